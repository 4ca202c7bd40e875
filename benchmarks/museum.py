"""How well the sanitizer names what is wrong in the museum: kinds named rightly, and false alarms on what is mended.

python benchmarks/museum.py             # prints a line for each exhibit that misses, saves the counts
python benchmarks/museum.py --no-save
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

from common import save
from onelaunch import museum


def main() -> None:
    """Sanitize every exhibit, broken and mended; print and save what came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-save", action="store_true", help="do not touch the saved measurement")
    args = parser.parse_args()
    topics = {topic: {"exhibits": 0, "named": 0, "false_alarms": 0} for topic in museum.TOPICS}
    kinds: Counter[str] = Counter()
    start = time.perf_counter()
    for exhibit in museum.exhibits():
        row = topics[exhibit.topic]
        found = [(finding.kind, finding.tensor) for finding in exhibit.broken().sanitize().findings]
        alarms = exhibit.mended().sanitize().findings
        kinds.update(kind for kind, _ in exhibit.findings)
        row["exhibits"] += 1
        row["named"] += found == list(exhibit.findings)
        row["false_alarms"] += bool(alarms)
        if found != list(exhibit.findings) or alarms:
            print(f"{exhibit.key}: expected {list(exhibit.findings)}, found {found}; mended: {alarms}")
    total: dict[str, Any] = {
        name: sum(row[name] for row in topics.values()) for name in ("exhibits", "named", "false_alarms")
    }
    total["silent"] = sum(exhibit.silent for exhibit in museum.exhibits())
    print(
        "{named} of {exhibits} broken exhibits named, {false_alarms} false alarms on as many mended ones".format(
            **total
        )
    )
    print(f"{time.perf_counter() - start:.1f} s")
    if not args.no_save:
        what = "exhibits of the museum whose findings, kinds and tensors, are exactly those expected"
        print(save("museum", {"what": what, **total, "topics": topics, "kinds": dict(kinds)}))


if __name__ == "__main__":
    main()
