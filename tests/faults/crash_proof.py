"""`make crash-proof TRIALS=1000`: kill everything that can be killed, and print what came of it.

The trials are spread over the tables, two worlds at a time. The exit code is 1 where a promise was broken.
"""

import argparse
import multiprocessing
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support_crash import CODEX, run

from relay_receiver.testing.trials import TABLES, WITHOUT_A_PERSON, Row

BATCH = 25
"""Trials in one world."""
ALONE = 0.995


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    names = [name for name in (*TABLES, *CODEX) if given.only in name]
    each = max(1, given.trials // len(names))
    batches = [(name, min(BATCH, each - done), given.seed + done) for name in names for done in range(0, each, BATCH)]
    rows = {name: Row(name=name) for name in names}
    say(f"seed {given.seed}: {each} trials of {len(names)} kinds")
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        for row in pool.imap_unordered(_run, batches):
            rows[row.name].add(row)
            say(f"  {row.name}: {dict(row.ends)} {row.broken or ''}")
    return report(list(rows.values()))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _run(batch: tuple[str, int, int]) -> Row:
    return run(*batch)


def report(rows: list[Row]) -> int:
    say(
        f"\n{'what was killed':<36}{'trials':>7}{'hit':>6}{'asked':>7}{'answered':>9}{'failed':>7}{'unknown':>8}"
        f"{'alone':>8}{'broken':>7}"
    )
    bad = False
    for row in rows:
        say(
            f"{row.name:<36}{row.trials:>7}{row.hits:>6}{row.asked:>7}{row.ends['answered']:>9}{row.ends['failed']:>7}"
            f"{row.settled:>8}{row.alone:>8.1%}{len(row.broken):>7}"
        )
        bad = bad or bool(row.broken) or (row.name in WITHOUT_A_PERSON and row.alone < ALONE)
    for row in rows:
        for line in row.broken:
            say(f"{row.name}: {line}")
        if row.missed:
            say(f"{row.name}: not come to, so that nothing was killed: {', '.join(sorted(set(row.missed)))}")
    say("\na promise was broken" if bad else "\nevery promise was kept")
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
