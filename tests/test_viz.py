"""Figures: words for those who do not see them, colours of the page they stand in, and nothing that leaks into it."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from functools import cache

import pytest
import torch
from matplotlib.figure import Figure as Drawing

from onelaunch import emulator, viz
from onelaunch.padding import nano_vllm, tensorrt_llm
from onelaunch.timeline import KernelCost, LaunchCosts, lay_out
from onelaunch.timeline.costs import Costs
from onelaunch.timeline.published import compare, published_rows
from onelaunch.viz import canvas, graphs, layers, paddings, pools

BENCHMARK = {
    "hardware": {"cpu": "Some CPU", "cores": 2, "gpu": None},
    "versions": {"python": "3.11", "torch": "2.13.0", "transformers": "5.24.0"},
    "date": "2026-11-29",
    "rows": [
        {"threads": 1, "batch": 1, "onelaunch_ms": 47.2, "huggingface_ms": 59.1, "linear_floor_ms": 42.0},
        {"threads": 1, "batch": 8, "onelaunch_ms": 98.5, "huggingface_ms": 127.0, "linear_floor_ms": 83.0},
        {"threads": 2, "batch": 1, "onelaunch_ms": 1.0, "huggingface_ms": 2.0, "linear_floor_ms": 0.5},
    ],
}
REPLAY = {
    **{key: BENCHMARK[key] for key in ("hardware", "versions", "date")},
    "layers": 28,
    "shapes": [
        {
            "hidden": 64,
            "batch": 8,
            "threads": 1,
            "attention": "explicit",
            "ms": {"eager": 12.0, "rerun": 12.0, "python": 8.0, "native": 4.0, "trace": 6.0},
            "limit_ms": 3.0,
        }
    ],
}
BATCH = {"input_ids": [253, 48376, 260, 0], "positions": [5, 6, 4, 0], "seq_lens": [6, 7, 5, 1]}
TABLE = [[3, 0, 9], [1, 9, 9], [9, 9, 9], [9, 9, 9]]  # the last row is the dummy's
X, WEIGHT = torch.ones(8, 64), torch.ones(64, 64)
GRAPHS = []  # a deleted graph gives its memory back, and there is no map of it any more


def tape(pool=None, rows=8):
    """gate and up, as in a Llama: two kernels that need nothing from each other, but share memory."""
    g, x = emulator.CUDAGraph(), X[:rows]
    with emulator.graph(g, pool=pool):
        out = (x @ WEIGHT).relu() * (x @ WEIGHT) * 0.5  # noqa: F841 - held until the capture ends: an output
    GRAPHS.append(g)
    return g.tape


MOMENTS = [
    viz.Moment("x.copy_(6)", {4096: 6.0}, 4096, 60.0),
    viz.Moment("x = new", {4096: 6.0, 512: 7.0}, 512, 60.0),
]
KERNELS = [("norm", 2.0), ("gate and up", 60.0), ("silu", 1.0), ("down", 30.0)] * 30


def steps(launch_us: float, *modes: str):
    """A step of short and long kernels."""
    return [lay_out(KERNELS, mode, launch=LaunchCosts(launch_us=launch_us, prepare_us=7), eager=[1]) for mode in modes]


STEP_COSTS = [
    KernelCost("product", "matmul", 10**6, 10**6, "fp16"),
    KernelCost("attention", "attention", 10**6, 4 * 10**6, "fp16"),
    KernelCost("norm", "elementwise", 10**4, 10**3, "fp32"),
]
CAPTURES = {"here": viz.Capture(0.4, 5.0), "70B": viz.Capture(60, 1.5)}
COSTS = Costs.from_dict(viz.measured("costs"))
FIGURES = {
    "lanes": lambda: viz.step_lanes(steps(40, "eager", "graph", "piecewise")),
    "lanes, the end": lambda: viz.step_lanes(steps(5, "eager"), window_us=200, start_us=2700),
    "speed-ups": lambda: viz.speedups({"7B": {1: 1.5, 8: 1.2}, "slower": {1: 0.9, 300: 1.0}}, {"7B": {1: (1.4, 1.6)}}),
    "break-even": lambda: viz.break_even(CAPTURES),
    "running": lambda: viz.running_requests({32: [(0.0, 3), (9.5, 57)], 64: [(0.0, 3), (9.5, 14)]}, burst_s=5),
    "roofline": lambda: viz.roofline({"batch 1": STEP_COSTS, "batch 2": STEP_COSTS[:1]}, "T4"),
    "published": lambda: viz.simulated_against_published([compare(row) for row in published_rows()[::8]]),
    "exact sizes": lambda: viz.padding_staircase(tensorrt_llm(40), 40, batch=37),
    "cost line": lambda: viz.cost_line(COSTS.operation, "a + b", COSTS.machine),
    "replay line": lambda: viz.cost_line(COSTS.replay["python"], "A tape"),
    "host time": lambda: viz.host_time(COSTS),
    "launch-bound": lambda: viz.host_and_device_lanes(launch_us=5, kernel_us=2),
    "device-bound": lambda: viz.host_and_device_lanes(launch_us=5, kernel_us=20),
    "copied": lambda: viz.fixed_buffers(BATCH, BATCH, live=3),
    "stale": lambda: viz.fixed_buffers(BATCH, {**BATCH, "positions": [0, 0, 0, 0]}, live=3),
    "places": lambda: viz.name_and_graph("x", MOMENTS, reads=4096),
    "gathered": lambda: viz.gathered_tokens({"step 1": [5, 31], "step 2": [6, 32]}, max_len=64),
    "bars": lambda: viz.bars({"64 tokens": {"a": 1.5, "b": 2}, "128 tokens": {"b": 3}}, "time of a step", "ms"),
    "staircase": lambda: viz.padding_staircase([1, 2, 4, 8], 10, batch=5),
    "staircase with traffic": lambda: viz.padding_staircase([32, 48, 64], 64, counts={37: 9, 3: 1}),
    "capture lists": lambda: viz.capture_lists({"short": [1, 2, 4], "long": range(1, 40), "none": []}, top=32),
    "waste": lambda: viz.waste_against_graphs({2: 0.9, 4: 0.5, 8: 0.1}, {"even": (4, 0.6), "uneven": (5, 0.55)}),
    "outcomes": lambda: viz.outcomes({"no fault": {"rerun": "right", "tape": "right"}, "branch": {"tape": "wrong"}}),
    "counts": lambda: viz.kernel_counts({"norms": 61, "matrix products": 121}),
    "pages": lambda: viz.page_table(TABLE, seq_lens=[20, 7], rows=[0, 1], page_size=16, num_pages=6, dummy_page=9),
    "batches": lambda: viz.batch_timeline([("prefill", [0]), ("decode", [0]), ("prefill", [1]), ("decode", [0, 1])]),
    "times": lambda: viz.time_bars(BENCHMARK),
    "speeds": lambda: viz.replay_speeds(REPLAY, ["64/8"]),
    "measured speeds": lambda: viz.replay_speeds(viz.measured("replay")),
    "operators": lambda: viz.operators(viz.measured("operators")),
    "models": lambda: viz.transformers_models(viz.measured("transformers_models")),
    "tape": lambda: viz.tape_table(tape(), {"x": X}),
    "graph": lambda: viz.tape_graph(tape(), {"x": X}),
    "pool": lambda: viz.pool_map(tape()),
    "two graphs": lambda: viz.pool_map(first := tape(), tape(first.pool.handle, rows=4)),
}


@cache
def drawn(name: str) -> viz.Figure:
    """A figure, drawn once for all tests that only look at it."""
    return FIGURES[name]()


@pytest.fixture(params=FIGURES)
def figure(request):
    return drawn(request.param)


def figure_with_clips() -> viz.Figure:
    """An ordinary matplotlib plot: its clip paths and markers are referred to by id."""
    drawing = Drawing(figsize=(3, 2))
    drawing.subplots().plot([0, 1, 2], [0, 1, 4], marker="o")
    return viz.Figure(drawing, "A curve through three points")


def test_a_figure_is_one_picture_with_its_words(figure):
    root = ET.fromstring(figure.svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == figure.alt
    assert len(figure.alt.split()) > 8
    assert "viewBox" in root.attrib
    assert "width" not in root.attrib
    assert figure.svg in figure._repr_html_()


def test_text_stays_text_and_takes_the_page_s_colour_and_fonts(figure):
    root = ET.fromstring(figure.svg)
    texts = [element for element in root.iter() if element.tag.endswith("}text")]
    assert texts
    for text in texts:
        assert "fill:currentColor" in text.get("style")
        assert "font-family" not in text.get("style")
        assert float(re.search(r"font-size:([\d.]+)px", text.get("style"))[1]) >= 10.5


def test_no_text_runs_off_the_figure(figure):
    root = ET.fromstring(figure.svg)
    width = float(root.get("viewBox").split()[2])
    for text in (element for element in root.iter() if element.tag.endswith("}text")):
        x = float(text.get("x") or re.search(r"translate\(([-\d.]+)", text.get("transform"))[1])
        needed = canvas.text_width(text.text)
        anchor = re.search(r"text-anchor:(\w+)", text.get("style"))
        left = x - {"middle": needed / 2, "end": needed}.get(anchor[1] if anchor else "start", 0)
        assert left >= -6, text.text  # text_width leaves some room around the letters
        assert left + needed <= width + 6, text.text


def test_nothing_of_a_figure_leaks_into_the_page(figure):
    for each in (figure, figure_with_clips()):
        html = each._repr_html_()
        assert "<style" not in html
        assert "<?xml" not in html
        assert "<!DOCTYPE" not in html
        assert "http" not in re.sub(r'xmlns(:\w+)?="[^"]*"', "", html)


def test_the_background_is_the_page_s(figure):
    assert not re.search(r"fill:(#ffffff|white)", figure.svg)


@pytest.mark.parametrize("name", FIGURES)
def test_the_same_data_give_the_same_figure(name):
    assert FIGURES[name]().svg == drawn(name).svg


def test_two_figures_on_a_page_share_no_id():
    first, again = figure_with_clips().svg, figure_with_clips().svg
    ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (first, again)]
    assert ids[0]
    assert not ids[0] & ids[1]
    for svg, own in zip((first, again), ids, strict=True):
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) | set(re.findall(r'href="#([^"]+)"', svg)) == own


@pytest.mark.parametrize("alt", ["", "  ", "figure.png", "/build/figure 1.png", "a plot"])
def test_a_figure_without_words_is_refused(alt):
    with pytest.raises(ValueError, match="alt text"):
        viz.Figure(Drawing(), alt)


def test_as_text_a_figure_is_what_it_shows(figure):
    assert repr(figure) == f"Figure: {figure.alt}"


def test_alt_text_and_caption_cannot_break_the_markup():
    figure = viz.Figure(Drawing(figsize=(1, 1)), 'a "quoted" <b> & sign', caption="1 < 2 & <script>")
    ET.fromstring(figure._repr_html_())
    assert "<script>" not in figure._repr_html_()


def test_a_saved_figure_is_the_svg(tmp_path, figure):
    assert figure.save(tmp_path / "figure.svg").read_text(encoding="utf-8") == figure.svg


@pytest.mark.parametrize("background", ["#ffffff", "#14171c", "#111111"], ids=["light", "dark", "JupyterLab, dark"])
@pytest.mark.parametrize("color", [*canvas.REQUESTS, canvas.GREY])
def test_every_colour_stands_out_on_light_and_dark(color, background):
    def light(code: str) -> float:
        parts = [int(code[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((light(color), light(background)))
    assert (high + 0.05) / (low + 0.05) >= 3


def test_the_words_say_who_waits():
    assert "waits 3" in FIGURES["launch-bound"]().alt
    assert "without a gap" in FIGURES["device-bound"]().alt
    assert "Launch-bound" in FIGURES["launch-bound"]().caption


def test_the_words_follow_a_token_to_its_slot():
    caption = FIGURES["pages"]().caption  # request 1 has 7 tokens: the newest is token 6, in page 1
    assert "token 6. Column 6 // 16 = 0 of its row says page 1" in caption
    assert "offset 6 % 16 = 6" in caption


def test_the_words_name_every_count_and_the_hardware():
    assert "matrix products 121 and norms 61" in FIGURES["counts"]().alt
    times = FIGURES["times"]()
    assert "batch 8: One Launch 98.5 ms, Hugging Face 127 ms, linear layers alone 83 ms" in times.alt
    assert "Some CPU (2 cores), torch 2.13.0, transformers 5.24.0, 2026-11-29" in times.caption


def test_speeds_are_said_as_multiples_of_eager_and_with_their_limit():
    speeds = FIGURES["speeds"]()
    assert "rerun 1, tape, Python 1.5, tape, C++ 3, jit.trace 2, the limit 4" in speeds.alt
    assert "of 28 layers, 1 thread, medians" in speeds.caption
    assert "Some CPU (2 cores)" in speeds.caption


def test_the_table_says_what_each_kernel_reads_holds_and_writes():
    alt = viz.tape_table(tape(), {"x": X, "w": WEIGHT}).alt
    assert "0 mm reads x and w, writes @0; 1 relu reads @0, writes @2048; 2 mm reads x and w, writes @0" in alt
    assert "holds other=0.5" in alt


def test_a_long_tape_is_drawn_in_part_and_says_so():
    assert viz.tape_table(tape(), rows=2).caption.startswith("The first 2 of 5 kernels")
    assert viz.tape_graph(tape(), kernels=2).caption.startswith("The first 2 of 5 kernels")


def test_the_graph_tells_data_from_memory_that_is_used_again():
    alt = viz.tape_graph(tape(), {"x": X}).alt
    assert "0 mm to 1 relu" in alt
    assert "0 mm to 2 mm" not in alt
    assert alt.endswith("used again: 1 relu before 2 mm.")


def test_the_graph_names_what_runs_on_another_stream():
    side, g = emulator.Stream(), emulator.CUDAGraph()
    with emulator.graph(g):
        side.wait_stream(emulator.current_stream())
        with emulator.stream(side):
            up = X @ WEIGHT
        gate = (X @ WEIGHT).relu()
        emulator.current_stream().wait_stream(side)
        out = gate * up  # noqa: F841 - held until the capture ends: an output
    assert "On another stream: 0 mm." in viz.tape_graph(g.tape).alt
    assert "memory is used again" not in viz.tape_graph(g.tape).alt
    assert "stream" not in viz.tape_graph(tape()).alt


def test_a_line_stands_in_the_graph_for_every_order_that_the_tape_demands():
    recorded = tape()
    data = graphs.data_edges(recorded, 5)
    reached = {}
    for before, after in sorted(data + graphs.memory_edges(recorded, data, 5), key=lambda edge: edge[1]):
        reached.setdefault(after, set()).update({before} | reached.get(before, set()))
    for after, earlier in enumerate(recorded.dag()):
        assert set(earlier) <= reached.get(after, set())


def test_every_edge_leads_down_and_no_two_nodes_share_a_spot():
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("a", "e"), ("d", "e"), ("x", "e")]
    found = layers.arrange(["x", "a", "b", "c", "d", "e"], edges)
    assert all(found.spots[before][0] < found.spots[after][0] for before, after in edges)
    assert len(set(found.spots.values())) == 6
    assert len(found.routes["a", "e"]) == found.spots["e"][0] - found.spots["a"][0] + 1


def test_the_map_of_a_pool_says_what_reuse_saves():
    recorded = tape()
    caption = viz.pool_map(recorded).caption
    assert pools.size(recorded.pool.peak_bytes) in caption
    assert pools.size(recorded.pool.naive_bytes) in caption
    with pytest.raises(ValueError, match="share a pool"):
        viz.pool_map(recorded, tape())


def test_memory_that_was_given_back_is_not_drawn_but_explained():
    recorded = tape()
    GRAPHS.pop().reset()
    with pytest.raises(ValueError, match="Draw it before the graph is reset"):
        viz.pool_map(recorded)


def test_the_words_say_how_much_of_what_is_gathered_is_used():
    figure = FIGURES["gathered"]()
    assert "step 1: 5 and 31; step 2: 6 and 32" in figure.alt
    assert "Of 256 positions read here, 74 hold a token (29%)" in figure.caption


def test_the_words_say_what_a_batch_is_run_as_and_what_that_wastes():
    assert "5 requests run as 8: 3 rows of padding, 60% on top" in FIGURES["staircase"]().caption
    assert "10 requests fit into no graph" in viz.padding_staircase([1, 8], 10, batch=10).caption
    caption = FIGURES["staircase with traffic"]().caption  # 9 steps of 11 and one of 29 dummy rows, for 336 live ones
    assert f"{(9 * 11 + 29) / 336:.1%}" in caption
    assert "Without a graph: 1 step." in viz.padding_staircase([2], 4, counts={1: 1, 3: 1}).caption


def test_lists_are_said_with_their_number_of_graphs():
    alt = FIGURES["capture lists"]().alt
    assert "short has 3 graphs, 1, 2 and 4; long has 39 graphs, 1, 2, 3, 4, 5, 6 and so on to 39; none has none" in alt
    assert "even 60.0% with 4 graphs; uneven 55.0% with 5 graphs" in FIGURES["waste"]().alt


def test_the_words_say_how_long_both_steps_are_and_who_waits():
    alt = FIGURES["lanes"]().alt
    eager, graph, _ = steps(40, "eager", "graph", "piecewise")
    assert f"eager: {eager.step_us / 1e3:.2f} ms, the device busy {eager.busy_share:.0%}" in alt
    assert f"as a graph: {graph.step_us / 1e3:.2f} ms" in alt
    assert "which waits for the host; as a graph" in alt
    assert "from 2,700 µs on" in FIGURES["lanes, the end"]().alt


def test_the_words_say_what_graphs_gain_and_who_else_says_so():
    alt = FIGURES["speed-ups"]().alt
    assert "7B: 1.50 at batch 1, 1.20 at batch 8; slower: 0.90 at batch 1" in alt
    assert "Bars behind them: 7B: 1.40 to 1.60 at batch 1." in alt


def test_a_capture_pays_when_its_steps_have_saved_what_it_took():
    alt = FIGURES["break-even"]().alt
    assert "here: captured in 0.4 s, saves 5 ms a step, pays after 80 steps" in alt
    assert "70B: captured in 60 s, saves 1.5 ms a step, pays after 40,000 steps" in alt
    assert viz.Capture(1, 0).steps == float("inf")


def test_the_words_say_how_many_requests_run_under_each_ceiling():
    figure = viz.running_requests({32: [(0.0, 3), (5.0, 60), (9.0, 57)]}, burst_s=5)
    assert "with graphs up to 32, 3 to 60 requests run, and 57 at the end" in figure.alt
    assert "a burst at 5 s" in figure.alt


def test_a_list_without_padding_is_drawn_with_what_has_no_graph():
    assert "37 requests fit into no graph and run eagerly" in FIGURES["exact sizes"]().caption
    assert paddings._without_graph(tensorrt_llm(40), 45) == [(33, 39), (41, 45)]
    assert "the engine raises an error" in viz.padding_staircase(nano_vllm(20), 30, batch=17).caption


def test_every_outcome_is_in_the_words():
    assert FIGURES["outcomes"]().alt.endswith("no fault: rerun right and tape right; branch: tape wrong.")


def test_a_bar_has_its_name_and_value_in_the_words():
    assert "in ms. 64 tokens: a 1.5, b 2; 128 tokens: b 3." in FIGURES["bars"]().alt
    assert FIGURES["bars"]().caption == "Time of a step in ms."


def test_the_words_say_when_name_and_graph_have_parted():
    figure = FIGURES["places"]()
    assert "after x = new, x points to B, and the graph reads A, which holds 6" in figure.alt
    assert "After x = new the two have parted" in figure.caption
    assert "parted" not in viz.name_and_graph("x", MOMENTS[:1], reads=4096).caption


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: viz.host_and_device_lanes(launch_us=0, kernel_us=2), "above zero"),
        (lambda: viz.kernel_counts({}), "empty"),
        (lambda: viz.step_lanes([]), "empty"),
        (lambda: viz.step_lanes(steps(5, "eager"), window_us=0), "must lie in the steps"),
        (lambda: viz.step_lanes(steps(5, "eager"), start_us=1e9), "must lie in the steps"),
        (lambda: viz.speedups({}), "1 to 5 curves"),
        (lambda: viz.speedups({"a": {1: 2.0}}, {"b": {1: (1, 2)}}), "a curve for each band"),
        (lambda: viz.break_even({}), "1 to 5 captures"),
        (lambda: viz.running_requests({}), "1 to 4 curves"),
        (lambda: viz.running_requests({32: []}), "1 to 4 curves"),
        (lambda: viz.break_even({"a": viz.Capture(1, 0)}), "must save some"),
        (lambda: viz.outcomes({"a": {}}), "no trial"),
        (lambda: viz.outcomes({"a long name " * 9: {"tape": "right"}}), "no room"),
        (lambda: viz.padding_staircase([1, 2], 4, batch=5), "1 to 4"),
        (lambda: viz.padding_staircase([], 4), "recorded size"),
        (lambda: viz.capture_lists({}, 4), "must be a list"),
        (lambda: viz.waste_against_graphs({}, {"even": (4, 0.6)}), "entry each"),
        (lambda: viz.gathered_tokens({"step 1": [65]}, max_len=64), "1 to 64"),
        (lambda: viz.bars({"a": {}}, "time"), "needs a bar"),
        (lambda: viz.name_and_graph("x", MOMENTS, reads=1), "the one the graph reads"),
        (lambda: viz.page_table(TABLE, [20], page_size=16, num_pages=2, dummy_page=9), r"pages \[3\]"),
        (lambda: viz.page_table(TABLE, [0], page_size=16, num_pages=6, dummy_page=9), "1 or more"),
        (lambda: viz.batch_timeline([("decoding", [0])]), "prefill"),
        (lambda: viz.time_bars(BENCHMARK, threads=3), r"\[1, 2\]"),
        (lambda: viz.replay_speeds(REPLAY, ["64/8", "16/8"]), r"no 16/8 was measured .* \['64/8'\]"),
    ],
)
def test_data_that_cannot_be_drawn_is_refused_with_a_reason(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_importing_the_package_does_not_import_matplotlib():
    code = "import sys, onelaunch; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_figures_leave_the_reader_s_own_plots_alone():
    draw = "from onelaunch import viz; viz.kernel_counts({'a': 1})"
    code = f"import sys; {draw}; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_measurement_says_on_what_it_was_made() -> None:
    benchmark = viz.measured("generate")
    assert {"hardware", "versions", "date", "rows"} <= set(benchmark)
    assert {(row["threads"], row["batch"]) for row in benchmark["rows"]} >= {(1, 1), (1, 4), (1, 8)}
    assert benchmark["hardware"]["cpu"] in viz.time_bars(benchmark).caption


def test_an_unknown_measurement_names_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"no measurement 'speed'; there is .*generate"):
        viz.measured("speed")


def test_the_buffers_that_are_stale_are_named() -> None:
    stale = viz.fixed_buffers(BATCH, {**BATCH, "positions": [5, 6, 9, 0]}, live=3)
    assert stale.caption.startswith("positions was not copied")
    assert "Arrows lead to the buffers of input_ids and seq_lens" in stale.alt
    everything = {name: [value + 1 for value in values] for name, values in BATCH.items()}
    assert "input_ids, positions and seq_lens were not copied" in viz.fixed_buffers(BATCH, everything, live=4).caption
    assert "dummy" not in viz.fixed_buffers(BATCH, BATCH, live=4).svg


@pytest.mark.parametrize(
    ("buffers", "live", "said"),
    [
        ({"input_ids": [1]}, 1, "same names"),
        ({**BATCH, "positions": [1]}, 3, "one value a row"),
        (BATCH, 0, "1 to 4"),
        (BATCH, 5, "1 to 4"),
    ],
)
def test_buffers_that_do_not_fit_the_batch_are_refused(buffers: dict[str, list[int]], live: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        viz.fixed_buffers(BATCH, buffers, live)
