"""Fixtures for tests with the real Codex: its binary, an offline home, the scripted model, adapters over them."""

import asyncio
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import support_world
from support_time import WITHIN

from relay_receiver.adapters.base import AdapterEvent, Binding, Finished, Work
from relay_receiver.adapters.codex import CodexAdapter
from relay_receiver.processes.kept import Kept
from relay_receiver.processes.launch import Launcher
from relay_receiver.receiver.target import Target
from relay_receiver.testing.model import ModelEndpoint

INSTALL = "pip install openai-codex-cli-bin==0.163.0"

CONFIG = """\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
env_key = "MOCK_KEY"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
apps = false
unbounded_connection_retries = false
"""


def codex_binary() -> str:
    """The path of the real Codex."""
    try:
        import codex_cli_bin
    except ImportError as error:
        raise RuntimeError(f"these tests run the real Codex: {INSTALL}") from error
    return str(codex_cli_bin.bundled_codex_path())


@contextmanager
def codex_home(folder: Path) -> Iterator[ModelEndpoint]:
    """The Codex of this process's environment is one whose model the tests serve."""
    home = folder / "codex-home"
    home.mkdir(parents=True)
    variables = {"CODEX_HOME": str(home), "MOCK_KEY": "x"}
    with ModelEndpoint() as model, mock.patch.dict(os.environ, variables):
        (home / "config.toml").write_text(CONFIG.format(url=model.url))
        yield model


def codex_wishes(**more: Any) -> dict[str, Any]:
    """What is configured of a receiver whose agent is the Codex of a `codex_home`."""
    return {"adapter": "codex", "argv": (codex_binary(),), "env": ("MOCK_KEY",), **more}


@contextmanager
def codex_world(folder: Path, **wishes: Any) -> Iterator[tuple[support_world.World, ModelEndpoint, Target]]:
    """A hub, and one agent that is a Codex and works in a directory of its own."""
    with codex_home(folder) as model, support_world.world(folder) as made:
        yield made, model, made.agent("ada", **codex_wishes(**wishes))


class World:
    """One binding: directory, CODEX_HOME, spool and runtime, and the model that answers it."""

    def __init__(self, root: Path, runtime: Path, model: ModelEndpoint) -> None:
        self.model = model
        self.directory = root / "work"
        self.home = root / "codex-home"
        self.spool = root / "spool"
        self.runtime = runtime
        for folder in (self.directory, self.home, self.spool):
            folder.mkdir(mode=0o700)
        (self.home / "config.toml").write_text(CONFIG.format(url=model.url))

    def binding(self, **settings: Any) -> Binding:
        environment = {
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home),
            "PATH": os.defpath,
            "MOCK_KEY": "x",
            "LANG": "C.UTF-8",
        }
        return Binding(
            settings={"argv": [codex_binary()], "network": False, "tools": False, **settings},
            directory=self.directory,
            environment=environment,
            spool=self.spool,
            runtime=self.runtime,
        )


def end_left_over(place: World) -> None:
    """End the app-server that a failed test left with its keeper."""
    kept = Kept.read(place.spool, "agent")
    if kept is not None and kept.child is not None and not kept.keeper_gone():
        with suppress(ProcessLookupError):
            os.killpg(kept.child.pid, signal.SIGKILL)


@contextmanager
def world(tmp_path: Path) -> Iterator[World]:
    with TemporaryDirectory(prefix="rc") as runtime, ModelEndpoint() as model:
        place = World(tmp_path, Path(runtime), model)
        try:
            yield place
        finally:
            end_left_over(place)


def work(job: str, prompt: str, *, attempt: int = 1, credential: Path | None = None) -> Work:
    return Work(job=job, attempt=attempt, prompt=prompt, message=f"m-{job}", credential=credential)


class Heard:
    """The events of an adapter as they come."""

    def __init__(self, adapter: CodexAdapter) -> None:
        self.adapter = adapter
        self.events: list[AdapterEvent] = []
        self._changed = asyncio.Condition()
        self._task = asyncio.create_task(self._hear(), name="events")

    async def _hear(self) -> None:
        async for event in self.adapter.events():
            async with self._changed:
                self.events.append(event)
                self._changed.notify_all()

    async def until(self, wanted: Callable[[AdapterEvent], bool]) -> Any:
        """The first event that is `wanted`."""
        async with asyncio.timeout(WITHIN), self._changed:
            await self._changed.wait_for(lambda: any(wanted(event) for event in self.events))
            return next(event for event in self.events if wanted(event))

    async def end(self, key: str) -> Finished:
        """The end of that attempt."""
        found = await self.until(lambda event: isinstance(event, Finished) and event.key == key)
        assert isinstance(found, Finished)
        return found

    async def stop(self) -> None:
        await self._task


@asynccontextmanager
async def adapter(binding: Binding, *, detach: bool = False) -> AsyncIterator[tuple[CodexAdapter, Heard]]:
    """An adapter with a launcher of its own; let go at the end."""
    launcher = Launcher()
    await launcher.start()
    made = CodexAdapter(binding, launcher)
    heard = Heard(made)
    try:
        yield made, heard
    finally:
        await made.close(detach=detach)
        await heard.stop()
        await launcher.close()


def until(wanted: Callable[[], bool]) -> bool:
    """Look again and again at what no event tells, such as a file of another process."""
    between = threading.Event()
    deadline = time.monotonic() + WITHIN
    while not wanted():
        if time.monotonic() > deadline:
            return False
        between.wait(0.005)
    return True


@contextmanager
def other_writer(place: World, thread: str) -> Iterator[None]:
    """Somebody else's app-server that has the thread."""
    environment = dict(place.binding().environment)
    command = [codex_binary(), "app-server"]
    with subprocess.Popen(
        command,
        env=environment,
        cwd=place.directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        client = {"name": "other", "version": "1"}
        for name, method, params in (
            (1, "initialize", {"clientInfo": client}),
            (2, "thread/resume", {"threadId": thread}),
        ):
            server.stdin.write(json.dumps({"id": name, "method": method, "params": params}).encode() + b"\n")
            server.stdin.flush()
            answer = next(line for line in map(json.loads, server.stdout) if line.get("id") == name)
            assert "result" in answer, answer
        yield
        server.stdin.close()
