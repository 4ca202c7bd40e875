"""What asking for an operation costs the host, in each way to ask, and what launching costs where there is a GPU.

    python benchmarks/costs.py                # two minutes; saves what it found
    python benchmarks/costs.py --budget 20 --no-save

Compiles the C++ loop first, so that it is measured too.
"""

from __future__ import annotations

import argparse

from common import save
from onelaunch.tape import native
from onelaunch.timeline import costs


def main() -> None:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=120.0, metavar="S", help="seconds (default: %(default)s)")
    parser.add_argument("--no-save", action="store_true", help="do not touch the saved measurement")
    args = parser.parse_args()
    native.build()
    measured = costs.measure(args.budget)
    print(measured)
    if not args.no_save:
        print(save("costs", measured.as_dict()))


if __name__ == "__main__":
    main()
