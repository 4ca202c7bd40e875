"""Figures with knobs: what a setting gives, what a page gets, and the same in widgets."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from onelaunch import viz
from onelaunch.padding import nano_vllm, tensorrt_llm, waste
from onelaunch.timeline import KernelCost, LaunchCosts, simulate
from onelaunch.viz import explore_padding, explore_step, explorer

LISTS = {"halves": [1, 2, 4, 8, 16, 24, 32, 48], "exact": tensorrt_llm(40)}
TRAFFICS = {"day": {3: 10, 37: 5, 40: 1}, "night": {1: 7, 2: 1}}


def kernels(batch: int) -> list[KernelCost]:
    """Two layers of three kernels, and one behind them."""
    layer = [
        KernelCost("norm", "elementwise", 100 * batch, batch, "fp32"),
        KernelCost("product", "matmul", 50_000_000 + batch, 10_000_000 * batch, "fp16"),
        KernelCost("attention", "attention", 100_000 * batch, 1_000_000 * batch, "fp16"),
    ]
    return [*layer, *layer, KernelCost("logits", "matmul", 9_000_000, 20_000_000 * batch, "fp16")]


def padding():
    return viz.padding_explorer(LISTS, TRAFFICS, batch=37, most_graphs=3)


def step():
    return viz.step_explorer({"small": kernels}, ["T4", "H100"], batches=[1, 64], launch_us=[5, 40])


@pytest.fixture(params=[padding, step])
def made(request):
    return request.param()


def test_a_page_gets_knobs_a_picture_words_and_the_data(made):
    html = made._repr_html_()
    for knob in made.knobs:
        assert f'name="{knob.name}"' in html
    assert f'data-kind="{made.kind}"' in html
    assert made.figure(made.first).svg in html
    assert made.words(made.first) in html
    data = re.search(r'<script type="application/json">(.*?)</script>', html, flags=re.DOTALL)[1]
    assert json.loads(data) == json.loads(json.dumps(made.data))


def test_where_no_script_runs_the_knobs_are_hidden_and_the_page_says_why(made):
    assert "<form hidden>" in made._repr_html_()
    assert re.search("<noscript>.*JavaScript", made._repr_html_())


def test_a_page_asks_nothing_of_the_network_and_has_no_ids(made):
    html = made._repr_html_()
    assert "http" not in re.sub(r'"http://www\.w3\.org/[^"]*"', "", html)
    assert not re.search(r"require\(|import\(|fetch\(|\bsrc=|\bid=", html.replace("xlink:href", ""))


def test_every_input_has_a_label(made):
    html = made._repr_html_()
    labelled = re.findall(r"<label.*?</label>", html)
    assert len(labelled) == len(made.knobs)
    assert all(len(re.findall(r"<(?:select|input)\b", label)) == 1 for label in labelled)


def test_nothing_moves_by_itself(made):
    assert not re.search(r"animat|transition|setInterval|requestAnimationFrame|setTimeout", made._repr_html_())


def test_as_text_it_is_the_words(made):
    assert repr(made) == f"Explorer: {made.words(made.first)}"


def test_data_cannot_end_the_script():
    html = viz.padding_explorer({"</script><b>": [1, 2]}, {"a": {1: 1}}, batch=1)._repr_html_()
    assert "</script><b>" not in html


def test_what_a_list_wastes_is_what_waste_says():
    made = padding()
    found = waste(TRAFFICS["day"], LISTS["halves"])
    words = made.words({**made.first, "list": "halves"})
    assert words.startswith("37 requests run as 48: 11 rows of padding, 30% on top.")
    assert f"8 graphs compute {found.share:.1%} more rows" in words
    assert words.endswith("every step finds a graph.")


def test_a_list_without_padding_runs_eagerly_what_it_has_not():
    made = padding()
    words = made.words({**made.first, "list": "exact"})
    assert words.startswith("37 requests find no graph and run eagerly.")
    assert "compute 0.0% more rows" in words
    assert f"{5 / 16:.1%} of the steps find no graph" in words


def test_an_engine_that_raises_is_said_to():
    made = viz.padding_explorer({"nano-vllm": nano_vllm(20)}, TRAFFICS, batch=17, most_graphs=3)
    assert made.words(made.first).startswith("17 requests find no graph, and the engine raises an error.")


def test_the_best_list_has_as_many_graphs_as_are_asked_for_and_holds_the_largest_batch():
    made = padding()
    chosen = {**made.first, "list": explore_padding.BEST}
    assert made.chosen({**chosen, "graphs": 3}).sizes == (3, 37, 40)
    assert made.chosen({**chosen, "graphs": 1, "traffic": "night"}).sizes == (40,)


@pytest.mark.parametrize(("typed", "sizes"), [("8, 2 4,4", (2, 4, 8)), (" 1 ", (1,)), ("9999", (9999,))])
def test_a_list_can_be_typed(typed, sizes):
    made = padding()
    assert made.chosen({**made.first, "list": explore_padding.OWN, "own": typed}).sizes == sizes


@pytest.mark.parametrize(
    ("typed", "found"),
    [("", ""), ("1 two", "two"), ("0", "0"), ("-4", "-4"), ("1.5", "1.5"), ("10000", "10000"), ("٣", "٣")],
)
def test_what_is_no_list_is_said_and_the_picture_stays(typed, found):
    made = padding()
    settings = {**made.first, "list": explore_padding.OWN, "own": typed}
    assert made.words(settings) == f'{explore_padding.HELP} Found "{found}".'
    assert "staircase" in made.figure(settings).alt


def test_the_steps_are_those_of_the_simulator():
    made = step()
    settings = {**made.first, "gpu": "H100", "batch": 64, "launch_us": 40}
    for mode, found in zip(("eager", "graph"), made.steps(settings), strict=True):
        expected = simulate(kernels(64), "H100", mode, launch=LaunchCosts(launch_us=40))
        assert found.step_us == pytest.approx(expected.step_us, abs=0.01)
        assert found.busy_share == pytest.approx(expected.busy_share, abs=1e-3)
    assert "launch-bound" in made.words(settings)
    assert "Simulated: 7 kernels" in made.words(settings)


def test_a_kernel_that_comes_in_every_layer_is_there_once():
    times = step().times["small"]
    assert times["names"] == ["norm", "product", "attention", "logits"]
    assert times["order"] == [0, 1, 2, 0, 1, 2, 3]


def test_widgets_show_the_same_and_hide_what_does_nothing(made):
    ipywidgets = pytest.importorskip("ipywidgets", reason="pip install ipywidgets")
    box = made.widgets()
    *inputs, picture = box.children
    assert isinstance(picture, ipywidgets.HTML)
    assert made.words(made.first) in picture.value
    knob, widget = made.knobs[0], inputs[0]
    widget.value = list(knob.options)[-1]
    assert made.words({**made.first, knob.name: widget.value}) in picture.value.replace("&quot;", '"')
    for each, shown in zip(made.knobs, inputs, strict=True):
        hidden = each.when is not None and each.when != (knob.name, widget.value)
        assert (shown.layout.display == "none") == hidden


def test_while_a_page_is_built_no_notebook_is_live(monkeypatch):
    class Shell:
        kernel = object()

    monkeypatch.setattr("IPython.get_ipython", lambda: Shell())
    monkeypatch.delenv(explorer.STATIC, raising=False)
    assert viz.in_live_notebook()
    monkeypatch.setenv(explorer.STATIC, "1")
    assert not viz.in_live_notebook()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: viz.padding_explorer({}, TRAFFICS), "needs a list"),
        (lambda: viz.padding_explorer(LISTS, {"none": {}}), "every traffic a step"),
        (lambda: viz.padding_explorer({"none": []}, TRAFFICS), "every list needs a size"),
        (lambda: viz.step_explorer({}, ["T4"]), "needs a model"),
        (lambda: viz.step_explorer({"small": kernels}, ["T4"], first={"batch": 3}), "begins with 3"),
    ],
)
def test_nothing_to_choose_from_is_refused_with_a_reason(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_a_launch_cost_of_all_kinds_reaches_the_lanes():
    launch = LaunchCosts(prepare_us=50, finish_us=20, node_us=1, delay_us=3, queue=2)
    made = viz.step_explorer({"small": kernels}, ["T4"], batches=[1], launch_us=[5], launch=launch)
    eager, _ = made.steps(made.first)
    assert eager == explore_step.lay_out(
        [(span.name, round(span.us, 3)) for span in eager.device], "eager", launch=replace(launch, launch_us=5)
    )
