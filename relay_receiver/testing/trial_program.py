"""The agent of trials: a program of the standard library that puts each of its starts on the disk.

`python trial_program.py FOLDER`: appends the id of the request to `FOLDER/starts` with fsync before it does anything
else, then does what the words of the request say: `hold=NAME` waits for `FOLDER/release-NAME`, `exit=N` fails,
`say-nothing` is quiet, `big=N` answers N characters, `task=NAME` answers "did NAME".
"""

import json
import os
import sys
import time

LOOK_SECONDS = 0.01


def main(folder: str) -> int:
    """Do one job."""
    asked = json.loads(sys.stdin.read())
    note_start(folder, str(asked["requestId"]))
    prompt = str(asked["prompt"])
    said = prompt[prompt.rindex("This is for you:") :]
    if name := word(said, "hold"):
        while not os.path.exists(f"{folder}/release-{name}") and os.path.isdir(folder):  # noqa: PTH110, PTH112 - pathlib would double the start of this program
            time.sleep(LOOK_SECONDS)
    if status := word(said, "exit"):
        sys.stderr.write("going wrong on purpose\n")
        return int(status)
    if "say-nothing" in said:
        answer: dict[str, object] = {"quiet": True}
    elif size := word(said, "big"):
        answer = {"text": "x" * int(size)}
    else:
        answer = {"text": "did " + (word(said, "task") or "it")}
    sys.stdout.write(json.dumps(answer))
    return 0


def note_start(folder: str, request: str) -> None:
    """Put this start on the disk."""
    descriptor = os.open(f"{folder}/starts", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, request.encode() + b"\n")
    os.fsync(descriptor)
    os.close(descriptor)


def word(said: str, name: str) -> str | None:
    """What stands behind `name=`."""
    return said.split(f"{name}=", 1)[1].split(maxsplit=1)[0] if f"{name}=" in said else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
