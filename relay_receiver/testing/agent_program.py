"""The agent of the demo: a small program of the standard library that does what a few plain sentences ask.

It reads `{threadId, requestId, prompt}` as JSON on stdin and writes `{text}` on stdout, as every program of the
command adapter does, and gives work to others through `relay` with the credential that `RELAY_JOB` names. Each start
is on the disk, in the file `starts` of its directory, before it does anything else: one JSON line, synced. It
understands:

    Add 17 and 25.
    Work for 4 seconds.
    Count to 5 with bob, beginning with 1.    says its number, and asks bob to go on
    How many jobs have you had?
"""

import json
import os
import re
import subprocess
import sys
import time
from typing import Any

STARTS = "starts"
SEND_SECONDS = 30.0
THINK_SECONDS = 0.3
"""How long it pretends to think about a sum, so that it can be seen at work."""

_ASKED = re.compile(r"This is for you:.*?<<<(\w+)\n(.*)\n\1>>>", re.DOTALL)
_ME = re.compile(r"You are '([^']*)'")
_ADD = re.compile(r"add (\d+) and (\d+)", re.IGNORECASE)
_WORK = re.compile(r"work for (\d+(?:\.\d+)?) seconds", re.IGNORECASE)
_COUNT = re.compile(r"count to (\d+) with (\w+), beginning with (\d+)", re.IGNORECASE)


def main() -> int:
    """Do one job."""
    job: dict[str, Any] = json.load(sys.stdin)
    note_start(str(job["requestId"]))
    prompt = str(job["prompt"])
    asked = _ASKED.search(prompt)
    me = _ME.search(prompt)
    text = answer(asked[2] if asked else prompt, me[1] if me else "me")
    sys.stdout.write(json.dumps({"text": text}))
    return 0


def note_start(request: str) -> None:
    """Put this start on the disk."""
    line = json.dumps({"requestId": request, "pid": os.getpid(), "at": time.time()})
    descriptor = os.open(STARTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, line.encode() + b"\n")
    os.fsync(descriptor)
    os.close(descriptor)


def answer(asked: str, me: str) -> str:
    """What the program says to a request."""
    if found := _ADD.search(asked):
        time.sleep(THINK_SECONDS)
        first, second = int(found[1]), int(found[2])
        return f"{first} + {second} = {first + second}"
    if found := _WORK.search(asked):
        time.sleep(float(found[1]))
        return f"done, after {found[1]} seconds of work"
    if found := _COUNT.search(asked):
        last, other, number = int(found[1]), found[2], int(found[3])
        if number < last:
            send(other, f"Count to {last} with {me}, beginning with {number + 1}.")
        return str(number)
    with open(STARTS, "rb") as log:  # noqa: PTH123 - pathlib would double the start of this program
        return f"this is my job number {len(log.readlines())}"


def send(to: str, text: str) -> None:
    """Give another agent work, as this job."""
    line = [sys.executable, "-P", "-m", "relay_receiver.cli.main", "messages", "send", "--to", to, "--content", text]
    subprocess.run(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=SEND_SECONDS, check=True)


if __name__ == "__main__":
    sys.exit(main())
