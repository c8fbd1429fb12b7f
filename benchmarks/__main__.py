"""`python -m benchmarks [--quick] [--only NAME]...`: measures, and prints each figure with floor, goal and peer."""

import argparse
import datetime as dt
import importlib
import os
import platform
import sys
import traceback

from benchmarks.figure import Figure, table

NAMES = (
    "accept_to_result",
    "backlog",
    "idle",
    "start",
    "intake_page",
    "bounded",
    "durable_post",
    "push",
    "people_scale",
    "codex_turn",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    parser.add_argument("--only", action="append", choices=NAMES, help="measure this one (may be repeated)")
    wanted = parser.parse_args()
    print(f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d %H:%M} UTC, {platform.platform()}, {os.cpu_count()} cores")
    print(f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}\n", flush=True)
    figures: list[Figure] = []
    broken = []
    for name in wanted.only or NAMES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            figures += importlib.import_module(f"benchmarks.{name}").measure(quick=wanted.quick)
        except Exception:  # noqa: BLE001 - what the others measured is told all the same
            traceback.print_exc()
            broken.append(name)
    print(table(figures))
    missed = [each for each in figures if each.met is False]
    print(f"\n{len(missed)} of {sum(each.met is not None for each in figures)} goals missed.")
    if broken:
        print(f"Not measured: {', '.join(broken)}.")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
