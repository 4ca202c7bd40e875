"""The built site, served on this machine and looked at in a headless Chromium.

`ONELAUNCH_SITE` names another folder than `_build/html`. `CHROMIUM` names a browser that is not on the path.
"""

from __future__ import annotations

import functools
import http.server
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from check_all import find_chromium
from project import BUILD

SITE = Path(os.environ.get("ONELAUNCH_SITE") or BUILD / "html")
MEASURE = (Path(__file__).parent / "measure.js").read_text(encoding="utf-8")
VIEWS = [(width, theme) for width in (1280, 360) for theme in ("light", "dark")]


def built_pages() -> list[str]:
    """Every page of the site, as a path from its root; the root itself only leads to the first of them."""
    pages = [path.relative_to(SITE).as_posix() for path in sorted(SITE.rglob("*.html"))]
    return [page for page in pages if not page.startswith("_") and page != "index.html"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "page_name" in metafunc.fixturenames:
        # Without a site there is still one test, so that its absence fails and is not passed over.
        metafunc.parametrize("page_name", built_pages() or ["index.html"])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """All tests of a page go to the same process, which has its views already. (Marks for ``--dist loadgroup`` say the
    same, but xdist 3.8 does not see them under pytest 9.2.)"""
    from xdist.scheduler import LoadScopeScheduling

    class ByPage(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return nodeid.partition("[")[2] or nodeid

    return ByPage(config, log)


@pytest.fixture(scope="session", autouse=True)
def site() -> Path:
    if not (SITE / "index.html").exists():
        pytest.fail(f"there is no site in {SITE}: run `make book` first, or name its folder in ONELAUNCH_SITE")
    return SITE


@pytest.fixture(scope="session")
def address(site: Path) -> Any:
    """Where the site is served: http://127.0.0.1 and a free port."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Any:
    chromium = find_chromium()
    if chromium is None:
        message = (
            "no Chromium here, so nothing was looked at: install one (Debian and Ubuntu: `apt-get install chromium`, "
            "elsewhere Chrome or Chromium) or name one in CHROMIUM"
        )
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    quiet = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # Chromium refuses root with it
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=quiet + sandbox)
        yield running
        running.close()


@dataclass
class Visit:
    """One page in one view: what it asked for and complained about, and what `measure.js` found in it."""

    errors: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)


def watch(page: Any, visit: Visit, address: str) -> None:
    """Note whatever goes wrong on ``page``. A request to another host is noted and not let through."""

    def route(route: Any) -> None:
        url = route.request.url
        if url.startswith((address, "data:", "blob:")):
            route.continue_()
        else:
            visit.elsewhere.append(url)
            route.abort()

    page.route("**/*", route)
    page.on("console", lambda said: visit.errors.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: visit.errors.append(str(error)))
    page.on("requestfailed", lambda request: visit.failed.append(f"{request.url}: {request.failure}"))
    page.on("response", lambda got: visit.failed.append(f"{got.url}: {got.status}") if got.status >= 400 else None)


@pytest.fixture(scope="session")
def visit(browser: Any, address: str) -> Any:
    """Look at a page: ``visit(page_name, width, theme)``. Each view is loaded once and then remembered."""

    @functools.cache
    def look(page_name: str, width: int, theme: str) -> Visit:
        context = browser.new_context(viewport={"width": width, "height": 740}, color_scheme=theme)
        page, seen = context.new_page(), Visit()
        watch(page, seen, address)
        page.goto(f"{address}/{page_name}", wait_until="networkidle")
        seen.measured = page.evaluate(MEASURE)
        context.close()
        return seen

    return look


@pytest.fixture
def views(visit: Any, page_name: str) -> dict[str, Visit]:
    """The page of this test, wide and narrow, light and dark."""
    return {f"{width} px, {theme}": visit(page_name, width, theme) for width, theme in VIEWS}


@pytest.fixture
def phone(browser: Any, address: str) -> Any:
    """An empty tab as wide as a phone, and the address to go to."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    context.set_default_timeout(10_000)
    yield context.new_page(), address
    context.close()
