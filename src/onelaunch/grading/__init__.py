"""Exercises that grade themselves: what an exercise's notebook calls.

``check`` judges one answer in the running notebook, ``grade`` all of them, ``attempt`` lets a cell that tries out an
answer run before there is one. ``onelaunch grade`` judges a notebook from outside (``session``). Plain Python: the
same checks run in a kernel, in a test and in a browser. It stops accidents, not attackers: an answer runs in the
process that judges it.
"""

from onelaunch.grading.live import attempt, check, grade

__all__ = ["attempt", "check", "grade"]
