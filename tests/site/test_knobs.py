"""The figures with knobs, turned in a browser: the words below them are those that Python says, letter by letter."""

from __future__ import annotations

import random
from typing import Any

import pytest

from onelaunch import viz
from onelaunch.engine.shapes import SHAPES
from onelaunch.padding import mini_sglang, nano_vllm, sglang, tensorrt_llm, vllm
from onelaunch.timeline import HARDWARE, Efficiency, LaunchCosts
from onelaunch.timeline.fusion import fused_costs
from onelaunch.viz import explore_padding
from onelaunch.viz.steps import milliseconds

CONFIG = SHAPES["meta-llama/Meta-Llama-3-8B"]
MODELS = {
    "8B": lambda batch: fused_costs(CONFIG, batch, 1000, dtype="fp16"),
    "8B, an eighth": lambda batch: fused_costs(CONFIG, batch, 1000, dtype="fp16", ranks=8),
}
LISTS = {
    "halves": [1, 2, 4, 8, 16, 24, 32, 48, 64, 96],
    "raises": nano_vllm(20),
    **{
        made.engine: made
        for made in (mini_sglang(), nano_vllm(), sglang(), vllm(), tensorrt_llm(60), tensorrt_llm(96, padding=True))
    },
}
TRAFFICS = {
    "even": {size: 1 for size in range(1, 97)},
    "night": {1: 900, 2: 50, 3: 7},
    "one": {96: 1},
    "quarters": {3: 16, 5: 16},  # shares that end in a tie
}
TYPED = ["1 2 4", "96", "4,8 8\t3", "1 2 x", "", "0", "07 9", "1e3", "-1"]
# Every cost that there is, and a queue that is soon full.
COSTS = LaunchCosts(prepare_us=120.5, finish_us=33.25, node_us=0.3, delay_us=2.5, queue=7)

TURN = """(root, settings) => {
    for (const [name, value] of Object.entries(settings)) {
        const input = root.querySelector(`[name="${name}"]`);
        input.value = input.type === "range" ? JSON.parse(input.dataset.stops).indexOf(value) : value;
    }
    root.querySelector("form").dispatchEvent(new Event("input"));
    const svg = root.querySelector(".picture svg");
    return [root.querySelector(".said").textContent, svg.getAttribute("aria-label"), svg.textContent];
}"""


def padding() -> Any:
    made = viz.padding_explorer(LISTS, TRAFFICS, most_graphs=12)
    typed = [{**made.first, "list": explore_padding.OWN, "own": own} for own in TYPED]
    return made, typed


def step() -> Any:
    return viz.step_explorer(MODELS, list(HARDWARE)), []


def step_with_all_costs() -> Any:
    efficiency = Efficiency(memory=0.61, compute=0.5, floor_us=1.3)
    return viz.step_explorer(MODELS, ["H200", "T4"], launch=COSTS, efficiency=efficiency), []


@pytest.mark.parametrize("make", [padding, step, step_with_all_costs])
def test_the_page_says_what_python_says(browser, make):
    made, settings = make()
    rng = random.Random(0)
    settings = [made.first, *settings]
    settings += [{knob.name: rng.choice(list(knob.options)) for knob in made.knobs} for _ in range(90)]
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.set_content(made._repr_html_())
    root = page.locator(".onelaunch-explorer").element_handle()
    for each in settings:
        said, alt, drawn = page.evaluate(f"([root, settings]) => ({TURN})(root, settings)", [root, each])
        assert said == made.words(each), each
        if each.get("own") not in TYPED[3:]:
            assert alt.endswith(said)
        if made.kind == "explore_step":
            assert all(milliseconds(step.step_us) in drawn for step in made.steps(each))
    page.close()
    assert problems == []


def test_what_a_setting_does_not_need_is_hidden(browser):
    made, _ = padding()
    page = browser.new_page()
    page.set_content(made._repr_html_())
    assert not page.get_by_label("Number of graphs").is_visible()
    page.get_by_label("Sizes recorded").select_option(explore_padding.BEST)
    page.get_by_label("Number of graphs").wait_for(state="visible")
    assert not page.get_by_label("Sizes, with spaces between").is_visible()
    page.close()


def test_the_keyboard_turns_a_knob_and_a_reader_hears_its_value(browser):
    made, _ = step()
    page = browser.new_page()
    page.set_content(made._repr_html_())
    knob = page.get_by_label("Requests in the batch")
    knob.focus()
    before = page.locator(".said").inner_text()
    page.keyboard.press("End")
    assert knob.get_attribute("aria-valuetext") == "256"
    assert page.locator(".said").inner_text() != before
    assert page.locator(".said").get_attribute("role") == "status"
    page.close()


def test_twice_in_a_page_each_has_its_own_knobs(browser):
    made, _ = padding()
    page = browser.new_page()
    page.set_content(made._repr_html_() * 2)
    page.locator("select[name=traffic]").last.select_option("one")
    first, second = page.locator(".said").all_inner_texts()
    assert first == made.words(made.first)
    assert second == made.words({**made.first, "traffic": "one"})
    page.close()


def test_without_javascript_there_is_a_picture_with_its_words(browser):
    made, _ = step()
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.set_content(made._repr_html_())
    assert page.locator("svg[role=img]").is_visible()
    assert page.locator(".said").inner_text() == made.words(made.first)
    assert not page.locator("form").is_visible()
    assert "JavaScript" in page.locator("body").inner_text()
    context.close()


@pytest.mark.parametrize("make", [padding, step])
def test_on_a_phone_nothing_sticks_out(browser, make):
    made, _ = make()
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page = context.new_page()
    page.set_content(f'<meta name="viewport" content="width=device-width">{made._repr_html_()}')
    assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
    width = page.viewport_size["width"]
    for box in (knob.bounding_box() for knob in page.locator("label:visible").all()):
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
    context.close()
