"""The command line as people have it: real processes, one RELAY_HOME a machine, JSON read back."""

import ast
import contextlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support_time import WITHIN

AGENT = """
import json, os, sys, time
asked = json.loads(sys.stdin.read())
home = {home!r}
with open(os.path.join(home, "jobs"), "a") as log:
    log.write(os.environ.get("RELAY_JOB", "") + "\\n")
said = asked["prompt"].rpartition("This is for you:")[2]
while "hold" in said and not os.path.exists(os.path.join(home, "release")):
    time.sleep(0.01)
print(json.dumps({{"text": "did it"}}))
"""


HEAVY = ("sqlalchemy", "alembic", "httpx", "websockets", "starlette", "uvicorn", "mcp")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one command line gave."""

    code: int
    out: Any
    err: Any


class Machine:
    """One RELAY_HOME."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.project = home.with_name(f"{home.name}-project")
        self.project.mkdir(parents=True)
        self.program = home.with_name(f"{home.name}-agent.py")
        self.program.write_text(textwrap.dedent(AGENT.format(home=str(self.project))))

    @property
    def argv(self) -> str:
        """The agent of this machine, as `--argv` takes it."""
        return json.dumps([sys.executable, "-I", "-S", str(self.program)])

    def environment(self, **more: str) -> dict[str, str]:
        """A small one, with this RELAY_HOME."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RELAY_")}
        return {**kept, "RELAY_HOME": str(self.home), **more}

    def relay(self, *words: str, say: str | None = None, **environment: str) -> Answer:
        """Run one line, piped: JSON on stdout and stderr."""
        done = subprocess.run(
            [sys.executable, "-m", "relay_receiver.cli.main", *words],
            input=say,
            stdin=subprocess.DEVNULL if say is None else None,
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
            env=self.environment(**environment),
            cwd=self.project,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Answer(code=done.returncode, out=_read(done.stdout), err=_read(done.stderr))

    def ok(self, *words: str, say: str | None = None, **environment: str) -> Any:
        """Run one line that must succeed; its JSON."""
        answer = self.relay(*words, say=say, **environment)
        assert answer.code == 0, (words, answer)
        return answer.out

    def text(self, *words: str) -> str:
        """Run one line as on a terminal; its text."""
        done = subprocess.run(
            [sys.executable, "-m", "relay_receiver.cli.main", "--output", "text", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
            env=self.environment(),
            cwd=self.project,
        )
        return done.stdout + done.stderr

    def modules(self, *words: str) -> list[str]:
        """Which heavy libraries a line imports."""
        code = (
            "import sys; from relay_receiver.cli.main import run; code = run(sys.argv[1:]); "
            f"print([name for name in {HEAVY!r} if name in sys.modules] if code == 0 else code, file=sys.stderr)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
            env=self.environment(),
        )
        found: list[str] = ast.literal_eval(done.stderr)
        return found


def _read(text: str) -> Any:
    return json.loads(text) if text.strip() else None


@contextlib.contextmanager
def machine(path: Path) -> Iterator[Machine]:
    """A machine, on which nothing is left running afterwards."""
    made = Machine(path)
    try:
        yield made
    finally:
        for each in made.relay("receiver", "list").out["receivers"]:
            made.relay("--profile", each["profile"], "receiver", "stop", "--now", "--channel", each["channel"])
        made.relay("hub", "stop")
