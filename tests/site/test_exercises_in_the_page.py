"""Exercises in the page: a stub scores nothing, the reference everything, an endless loop is stopped, and no other host
is asked for anything, as far as the site carries Python; where it does not, the page names the host that does."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import MEASURE, Visit, watch

from exercise_pages import cells, exercises, page_of
from project import ROOT
from pyodide_files import CDN

NOTEBOOKS = exercises(ROOT)
FIRST = "ex02"
MINUTE = 60_000  # ms; loading Python on a busy machine takes long


@dataclass
class Exercise:
    """An exercise's page, open in a tab."""

    page: Any
    url: str
    visit: Visit
    loaded: list[str]  # addresses, the worker's too

    def run(self, name: str = "Check everything") -> str:
        """Press a button and wait for the end. Returns what the page then says about it."""
        button = self.page.get_by_role("button", name=name, exact=True).first
        button.click()
        self.page.locator(".exercise-go", has_text="Stop").first.wait_for(state="hidden", timeout=MINUTE)
        said = [text for text in self.page.locator(".exercise-status").all_inner_texts() if text]
        assert len(said) == 1, said
        return said[0]

    def statuses(self) -> list[str]:
        return self.page.locator(".exercise-badge").all_inner_texts()

    def score(self) -> str:
        return self.page.locator(".exercise-foot strong").inner_text()

    def answer(self, name: str, text: str) -> None:
        self.page.get_by_label(f"Your answer: {name}", exact=True).fill(text)


@pytest.fixture
def exercise(browser: Any, address: str, key: str) -> Iterator[Exercise]:
    yield from opened(browser, address, key)


def opened(browser: Any, address: str, key: str, **changes: Any) -> Iterator[Exercise]:
    """The page of an exercise as a phone shows it. changes: to the data that the build put on it."""
    context = browser.new_context(viewport={"width": 360, "height": 740})
    context.set_default_timeout(20_000)
    page, visit = context.new_page(), Visit()
    watch(page, visit, address)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    url = f"{address}/exercises/{NOTEBOOKS[key].stem}.html"
    if changes:
        page.route(url, lambda route: route.fulfill(response=(got := route.fetch()), body=changed(got.text(), changes)))
    page.goto(url)
    yield Exercise(page, url, visit, loaded)
    context.close()


DATA = re.compile(r'(<script type="application/json" id="exercise">)(.*?)(</script>)', re.DOTALL)


def changed(html: str, changes: dict[str, Any]) -> str:
    data = json.loads(DATA.search(html)[2]) | changes
    return DATA.sub(lambda found: found[1] + json.dumps(data).replace("</", "<\\/") + found[3], html)


def data_of(site: Path, key: str) -> dict[str, Any]:
    """What the build put on the page."""
    found = DATA.search((site / "exercises" / f"{NOTEBOOKS[key].stem}.html").read_text(encoding="utf-8"))
    assert found is not None, "the page of the exercise has no data: it is no page where it can be done"
    return json.loads(found[2])


@pytest.fixture(scope="session")
def bundled(site: Path) -> None:
    """The site carries Python. CI must prove that it does; elsewhere npm may be missing."""
    if not data_of(site, FIRST)["python"]["bundled"]:
        message = "the site was built without Python in it: run `make book` where npm is installed"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)


def reference(key: str) -> dict[str, str]:
    solution = ROOT / "exercises" / "solutions" / NOTEBOOKS[key].name
    return {cell["name"]: cell["source"] for cell in cells(solution) if cell["role"] == "answer"}


@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("key", list(NOTEBOOKS))
def test_a_stub_scores_nothing_the_reference_everything_and_no_other_host_is_asked(exercise, key):
    exercise.page.wait_for_load_state("networkidle")
    assert [url for url in exercise.loaded if "pyodide" in url or "worker.js" in url] == [], (
        "loaded before the first Run"
    )
    exercise.run()
    assert [url for url in exercise.loaded if "pyodide.asm.wasm" in url]
    count = len(exercise.statuses())
    assert exercise.statuses() == ["NOT STARTED"] * count
    assert exercise.score() == f"0 of {count}"
    for name, source in reference(key).items():
        exercise.answer(name, source)
    assert exercise.statuses() == ["NOT JUDGED"] * count, "an edit makes what was said a matter of the past"
    exercise.run()
    assert exercise.statuses() == ["PASS"] * count
    assert exercise.score() == f"{count} of {count}"
    seen = exercise.visit
    assert (seen.elsewhere, seen.failed, seen.errors) == ([], [], [])


@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("key", [FIRST])
def test_an_endless_loop_is_stopped_and_the_next_run_works(browser, address, key):
    for exercise in opened(browser, address, key, seconds=1):
        exercise.answer("captured_size", "def captured_size(size, sizes):\n    while True:\n        pass")
        said = exercise.run("Run and check")
        assert "Check 1 was stopped: no answer within 1 s. Is there a loop that never ends?" in said
        assert exercise.statuses()[:3] == ["FAIL", "NOT JUDGED", "NOT JUDGED"]
        exercise.answer("captured_size", reference(key)["captured_size"])
        exercise.run("Run and check")
        assert exercise.statuses()[:4] == ["PASS"] * 3 + ["NOT JUDGED"]
        assert "3 runs as 4" in exercise.page.locator(".exercise-output").nth(1).inner_text()
        exercise.answer("captured_size", "def captured_size(size, sizes):\n    return 1 / 0\nprint(10 ** 30)\n[][1]")
        said = exercise.run("Run and check")
        assert "A cell raised an error: captured_size" in said
        shown = exercise.page.locator(".exercise-output").first.inner_text()
        assert "1" + "0" * 30 in shown
        assert '"<captured_size>", line 4' in shown
        assert "in_page.py" not in shown
        failed = exercise.page.locator(".exercise-check").first.inner_text()
        for words in ("captured_size(3, [1, 2, 4, 8, 16, 24, 32])", "ZeroDivisionError", "line 2"):
            assert words in failed
        for scheme in ("dark", "light"):  # with verdicts, errors and output in sight
            exercise.page.evaluate("scheme => { document.documentElement.dataset.theme = scheme; }", scheme)
            measured = exercise.page.evaluate(MEASURE)
            assert (measured["theme"], measured["low"], measured["twice"]) == (scheme, [], [])
            assert measured["overflow"] <= 0


@pytest.mark.parametrize("key", [FIRST])
def test_text_is_kept_until_it_is_reset(exercise, key):
    page = exercise.page
    field = page.get_by_label("Your answer: captured_size")
    stub = field.input_value()
    exercise.answer("captured_size", "mine = 1  # </script>")
    page.reload()
    assert field.input_value() == "mine = 1  # </script>"
    assert "Your text from last time is back." in page.locator(".exercise-notes").inner_text()
    page.get_by_role("button", name="Reset").first.click()
    assert field.input_value() == stub
    page.get_by_role("button", name="Undo reset").click()
    assert field.input_value() == "mine = 1  # </script>"
    with page.expect_download() as got:
        page.get_by_role("button", name="Download as a notebook").click()
    assert got.value.suggested_filename == NOTEBOOKS[key].name
    mine = {cell["name"]: cell["source"] for cell in cells(Path(got.value.path())) if cell["role"] == "answer"}
    theirs = {cell["name"]: cell["source"] for cell in cells(NOTEBOOKS[key]) if cell["role"] == "answer"}
    assert mine == theirs | {"captured_size": "mine = 1  # </script>"}


@pytest.mark.parametrize("key", [FIRST])
def test_a_browser_that_keeps_nothing_is_told_of(exercise):
    page = exercise.page
    page.add_init_script("Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no'); }})")
    page.reload()
    assert "keeps nothing" in page.locator(".exercise-notes").inner_text()
    exercise.answer("captured_size", "mine = 1")
    page.get_by_role("button", name="Reset").first.click()
    page.get_by_role("button", name="Undo reset").click()
    assert page.get_by_label("Your answer: captured_size").input_value() == "mine = 1"


@pytest.mark.parametrize("key", [FIRST])
def test_an_editor_indents_and_is_no_trap_for_the_keyboard(exercise):
    page = exercise.page
    field = page.get_by_label("Your answer: captured_size")
    field.fill("")
    field.focus()
    page.keyboard.type("if a:  # so\nb\n")
    page.keyboard.press("Shift+Tab")
    page.keyboard.type("c")
    page.keyboard.press("Tab")
    page.keyboard.type("d")
    assert field.input_value() == "if a:  # so\n    b\nc   d"
    page.keyboard.press("Control+a")
    page.keyboard.press("Tab")
    assert field.input_value() == "    if a:  # so\n        b\n    c   d"
    page.keyboard.press("Shift+Tab")
    assert field.input_value() == "if a:  # so\n    b\nc   d"
    page.keyboard.press("Control+z")
    assert field.input_value() == "    if a:  # so\n        b\n    c   d"
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Run and check"
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.tagName") != "TEXTAREA"


@pytest.mark.parametrize("key", [FIRST])
def test_hints_come_one_by_one(exercise, site, key):
    hints = data_of(site, key)["checks"]["1"]["hints"]
    box = exercise.page.locator(".exercise-check").first
    for at in range(3):
        box.get_by_role("button", name=f"Hint {at + 1} of 3").click()
        assert box.locator(".exercise-hints li").all_inner_texts() == hints[: at + 1]
    assert not box.get_by_role("button").is_visible()


@pytest.mark.usefixtures("bundled")
@pytest.mark.parametrize("key", [FIRST])
def test_without_python_in_the_site_the_page_names_the_host_and_takes_nothing_else_from_it(browser, address, site, key):
    python = data_of(site, key)["python"] | {"at": CDN, "bundled": False}
    for exercise in opened(browser, address, key, python=python):
        page, asked, damaged = exercise.page, [], [True]

        def host(route: Any) -> None:
            name = route.request.url.removeprefix(CDN)
            asked.append(name)  # noqa: B023 - called while this very page is open
            body = (site / "_static" / "exercises" / "pyodide" / name).read_bytes()
            headers = {"access-control-allow-origin": "*"}
            route.fulfill(body=body + b" " if damaged[0] else body, headers=headers)  # noqa: B023

        page.route(f"{CDN}**", host)
        assert "from cdn.jsdelivr.net: npm could not" in page.locator(".exercise-notes").inner_text()
        assert asked == []
        assert "Python could not be loaded from cdn.jsdelivr.net" in exercise.run()
        assert asked == ["pyodide.js"]
        damaged[0] = False
        exercise.run()
        assert set(exercise.statuses()) == {"NOT STARTED"}
        assert set(asked) == set(python["files"])
        assert exercise.visit.elsewhere == []


@pytest.mark.parametrize("key", [FIRST])
def test_a_page_opened_as_a_file_says_what_to_do(browser, site, key):
    context = browser.new_context()
    page = context.new_page()
    page.goto((site / "exercises" / f"{NOTEBOOKS[key].stem}.html").resolve().as_uri())
    assert "make serve" in page.locator(".exercise-notes").inner_text()
    assert page.locator("textarea").count() == 0
    assert page.locator(".cell", has_text="def captured_size").count() == 1
    context.close()


def test_every_exercise_of_the_page_was_looked_at(site):
    there = {page_of(f"exercises/{path.stem}") for path in (site / "exercises").glob("*.html")} - {""}
    assert there == set(NOTEBOOKS)


def test_what_judges_in_the_page_is_what_judges_elsewhere(site):
    with zipfile.ZipFile(site / "_static" / "exercises" / "onelaunch.zip") as packed:
        names = packed.namelist()
        different = [name for name in names if packed.read(name) != (ROOT / "src" / name).read_bytes()]
    assert different == []
    assert {f"onelaunch/grading/checks/{key}.py" for key in NOTEBOOKS} <= set(names)
