"""The book's figures: functions that take data and return a picture that a notebook shows.

A picture is a drawing with a sentence that says what it shows, readable on light and dark pages and on a phone.
"""

from onelaunch.viz.bars import bars, kernel_counts, replay_speeds, time_bars
from onelaunch.viz.batches import batch_timeline
from onelaunch.viz.buffers import fixed_buffers
from onelaunch.viz.costs import cost_line, host_time
from onelaunch.viz.explore_padding import padding_explorer
from onelaunch.viz.explore_step import step_explorer
from onelaunch.viz.explorer import Explorer, in_live_notebook
from onelaunch.viz.figure import Figure
from onelaunch.viz.gains import Capture, break_even, speedups
from onelaunch.viz.gathers import gathered_tokens
from onelaunch.viz.graphs import tape_graph
from onelaunch.viz.lanes import host_and_device_lanes
from onelaunch.viz.measured import measured
from onelaunch.viz.other_models import operators, transformers_models
from onelaunch.viz.outcomes import outcomes
from onelaunch.viz.paddings import capture_lists, padding_staircase, waste_against_graphs
from onelaunch.viz.pages import page_table
from onelaunch.viz.places import Moment, name_and_graph
from onelaunch.viz.pools import pool_map
from onelaunch.viz.rooflines import roofline, simulated_against_published
from onelaunch.viz.running import running_requests
from onelaunch.viz.steps import step_lanes
from onelaunch.viz.tables import tape_table

__all__ = [
    "Capture",
    "Explorer",
    "Figure",
    "Moment",
    "bars",
    "batch_timeline",
    "break_even",
    "capture_lists",
    "cost_line",
    "fixed_buffers",
    "gathered_tokens",
    "host_and_device_lanes",
    "host_time",
    "in_live_notebook",
    "kernel_counts",
    "measured",
    "name_and_graph",
    "operators",
    "outcomes",
    "padding_explorer",
    "padding_staircase",
    "page_table",
    "pool_map",
    "replay_speeds",
    "roofline",
    "running_requests",
    "simulated_against_published",
    "speedups",
    "step_explorer",
    "step_lanes",
    "tape_graph",
    "tape_table",
    "time_bars",
    "transformers_models",
    "waste_against_graphs",
]
