"""The page of ``onelaunch trace``: one file, no network, small for large traces, moved by mouse, key and finger."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from check_all import find_chromium
from onelaunch import cli
from onelaunch.timeline import LaunchCosts, lay_out, trace_html
from onelaunch.timeline.chrome import ChromeTrace, from_steps
from onelaunch.timeline.trace import open_trace
from onelaunch.timeline.trace_report import as_text


def decode(steps: int = 6, kernels: int = 40) -> ChromeTrace:
    launch = LaunchCosts(launch_us=6, prepare_us=50, delay_us=1)
    return from_steps([lay_out([("k<float>", 2.0), ("</script><b>", 3.0)] * (kernels // 2), launch=launch)] * steps)


def data_of(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(found[1])


def test_the_page_needs_no_network_and_trusts_no_name(tmp_path: Path) -> None:
    trace = decode()
    trace.hardware = "<img src=x> @DATA@ GPU"
    page = trace_html.as_html(open_trace(trace.save(tmp_path / "<b>@REPORT@.json")))
    assert not re.search(r"https?:|//[a-z]|src=|url\(|@import|<link", page.replace("&lt;img src=x&gt;", ""))
    assert "default-src 'none'" in page
    assert page.count("</script>") == 2
    assert "<img" not in page
    assert "&lt;img src=x&gt; @DATA@ GPU" in page
    assert not re.search(r"@[A-Z_]+@", page.replace("@DATA@ GPU", "").replace("@REPORT@.json", ""))
    assert "</script><b>" in data_of(page)["names"]


def test_every_span_is_there_and_knows_its_launch(tmp_path: Path) -> None:
    page = data_of(trace_html.as_html(open_trace(decode().save(tmp_path / "t.json"))))
    lanes = {lane["name"]: lane["spans"] for lane in page["lanes"]}
    kernels = lanes["GPU 0: stream 7"]
    assert len(kernels) == 6 * 40
    starts = {span[0] for span in lanes["host: calls of the runtime"]}
    assert all(span[5] in starts and span[5] < span[0] for span in kernels)
    assert len(lanes["host: annotations"]) == 6


def test_every_device_is_drawn_below_the_thread_that_launches_for_it(tmp_path: Path) -> None:
    trace = ChromeTrace()
    for device in (0, 1):
        for number in range(3):
            call = trace.call("cudaLaunchKernel", 10 * number, 10 * number + 4, thread=1 + device)
            trace.work("ncclDevKernel_AllReduce", 10 * number + 5, 10 * number + 8, call, device=device)
    seen = open_trace(trace.save(tmp_path / "t.json"))
    lanes = data_of(trace_html.as_html(seen))["lanes"]
    names = [lane["name"] for lane in lanes]
    assert names == [
        "host for GPU 0: calls of the runtime",
        "GPU 0: stream 7",
        "GPU 0: waits, by cause",
        "host for GPU 1: calls of the runtime",
        "GPU 1: stream 7",
        "GPU 1: waits, by cause",
    ]
    assert [lane.get("calls") for lane in lanes] == [None, 0, None, None, 3, None]
    assert "while it waits for the other GPUs" in as_text(seen)


def test_a_large_trace_makes_a_small_page_that_keeps_the_step_in_the_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_html, "BUDGET", 1200)
    monkeypatch.setattr(trace_html, "BUCKETS", 50)
    trace = open_trace(decode(steps=60).save(tmp_path / "t.json"))
    text = trace_html.as_html(trace)
    page = data_of(text)
    spans = next(lane["spans"] for lane in page["lanes"] if lane["name"] == "GPU 0: stream 7")
    assert sum(span[4] for span in spans) == 60 * 40
    assert len(spans) < 300
    steps = trace.devices[0].steps
    assert steps is not None
    inside = [span for span in spans if steps.median.start_us <= span[0] < steps.median.end_us]
    assert len(inside) == 40
    assert "drawn together" in text


def test_the_command_writes_the_page_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    file = decode().save(tmp_path / "there" / "decode.pt.trace.json.gz")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["trace", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == "Timeline: decode.html"
    assert max(map(len, printed.splitlines())) <= 80
    assert "A graph would save at most" in printed
    assert cli.main(["trace", str(file), "--html", "other.html"]) == 0
    assert (tmp_path / "other.html").read_text() == (tmp_path / "decode.html").read_text()
    assert cli.main(["trace", str(file)]) == 0  # its own page is written again
    (tmp_path / "decode.html").write_text("<p>a page of mine</p>")
    assert cli.main(["trace", str(file)]) == 2  # but nobody else's
    assert (tmp_path / "decode.html").read_text() == "<p>a page of mine</p>"
    assert cli.main(["trace", str(file), "--html", str(file)]) == 2
    assert cli.main(["trace", str(file), "--html", "no/such/folder.html"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_as_json_it_prints_data_and_draws_only_if_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = decode().save(tmp_path / "decode.json")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["trace", str(file), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["devices"][0]["whole"]["kernels"] == 240
    assert data["devices"][0]["steps"]["count"] == 6
    assert cli.main(["trace", str(file), "--no-html"]) == 0
    assert list(tmp_path.glob("*.html")) == []
    capsys.readouterr()
    assert cli.main(["trace", str(file), "--json", "--html", "x.html"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert (tmp_path / "x.html").exists()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = find_chromium()
    if chromium is None:
        pytest.skip("no Chromium here, so the page was not tried")
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        )
        yield running
        running.close()


def test_the_timeline_is_moved_by_key_mouse_wheel_and_button(browser: Any, tmp_path: Path) -> None:
    out = trace_html.write(open_trace(decode().save(tmp_path / "t.json")), tmp_path / "t.html")
    for width, scheme in ((1280, "light"), (360, "dark")):
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        said: list[str] = []
        page.on("pageerror", lambda error, said=said: said.append(str(error)))
        page.on("console", lambda message, said=said: said.append(message.text))
        page.goto(out.as_uri())

        def size(page: Any = page) -> float:
            return float(page.evaluate("view.to - view.from"))

        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        step = size()
        page.click("#all")
        assert size() > 5 * step
        page.focus("#timeline")
        page.keyboard.press("s")
        assert size() == pytest.approx(step)
        page.keyboard.press("+")
        assert size() == pytest.approx(step / 2)
        before = page.evaluate("view.from")
        page.keyboard.press("ArrowRight")
        assert page.evaluate("view.from") > before
        box = page.locator("#timeline").bounding_box()
        page.mouse.move(box["x"] + width / 2, box["y"] + 60)
        zoomed = size()
        page.mouse.wheel(0, -200)
        page.wait_for_function(f"view.to - view.from < {zoomed}")
        before = page.evaluate("view.from")
        page.mouse.down()
        page.mouse.move(box["x"] + width / 2 - 60, box["y"] + 60, steps=3)
        page.mouse.up()
        assert page.evaluate("view.from") > before
        page.click("[data-wait='0']")
        assert "waits, by cause" in page.inner_text("#details")
        x, y = page.evaluate(
            """() => { const row = data.lanes.findIndex(lane => lane.name.includes("stream"));
            show(data.lanes[row].spans[3][0] - 5, data.lanes[row].spans[3][0] + 9);
            return [x_of(data.lanes[row].spans[3][0] + 1), top_of(row) + 5]; }"""
        )
        box = page.locator("#timeline").bounding_box()
        page.mouse.click(box["x"] + x, box["y"] + y)
        assert "</script><b>" in page.inner_text("#details")
        assert "launched" in page.inner_text("#details")
        assert said == []
        page.close()


def test_two_fingers_zoom(browser: Any, tmp_path: Path) -> None:
    out = trace_html.write(open_trace(decode().save(tmp_path / "t.json")), tmp_path / "t.html")
    page = browser.new_page(viewport={"width": 360, "height": 800}, has_touch=True)
    page.goto(out.as_uri())
    before, after = page.evaluate(
        """() => { const size = () => view.to - view.from, before = size();
        canvas.setPointerCapture = () => {};
        const send = (type, id, x) => { const event = new PointerEvent(type, { pointerId: id, bubbles: true });
          Object.defineProperty(event, "offsetX", { value: x }); Object.defineProperty(event, "offsetY", { value: 50 });
          canvas.dispatchEvent(event); };
        send("pointerdown", 1, 100); send("pointerdown", 2, 200);
        send("pointermove", 1, 50); send("pointermove", 2, 250);
        send("pointerup", 1, 50); send("pointerup", 2, 250);
        return [before, size()]; }"""
    )
    assert after == pytest.approx(before / 2, rel=0.05)
    page.close()
