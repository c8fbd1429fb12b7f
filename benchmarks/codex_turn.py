"""One turn of the real Codex through our adapter and its keeper, and the same turn with the app-server by hand."""

import asyncio
import importlib.util
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.figure import Figure
from relay_receiver.adapters.base import Accepted, Binding, Finished, Work
from relay_receiver.adapters.codex import CodexAdapter
from relay_receiver.processes.launch import Launcher
from relay_receiver.testing.model import ModelEndpoint

WARM = 3
PROMPT = "Say it.\nmodel: say done"
CONFIG = """\
model = "mock-model"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{url}"
wire_api = "responses"
[analytics]
enabled = false
[feedback]
enabled = false
[features]
plugins = false
apps = false
"""

Turn = Callable[[int], Awaitable[None]]


def measure(*, quick: bool) -> list[Figure]:
    program = _codex()
    if program is None:
        return []
    count = 20 if quick else 60
    with ModelEndpoint() as model, tempfile.TemporaryDirectory(prefix="relay-benchmark-") as folder:
        root = Path(folder)
        ours = asyncio.run(_ours(_binding(root / "ours", model.url, program), count))
        floor = asyncio.run(_by_hand(_binding(root / "hand", model.url, program), count))
    return [
        Figure(
            what="codex turn, median",
            value=statistics.median(ours),
            unit="ms",
            floor=statistics.median(floor),
            note=f"overhead {statistics.median(ours) - statistics.median(floor):.1f} ms; floor: the app-server by hand,"
            f" the same scripted model; n {count}",
        )
    ]


def _codex() -> str | None:
    """The Codex of the test requirements, else the installed one."""
    if importlib.util.find_spec("codex_cli_bin") is None:
        return shutil.which("codex")
    import codex_cli_bin

    return str(codex_cli_bin.bundled_codex_path())


def _binding(root: Path, url: str, program: str) -> Binding:
    home, directory, spool, runtime = (root / name for name in ("home", "work", "spool", "run"))
    for each in (home, directory, spool, runtime):
        each.mkdir(parents=True, mode=0o700)
    (home / "config.toml").write_text(CONFIG.format(url=url))
    environment = {"HOME": str(home), "CODEX_HOME": str(home), "PATH": os.defpath, "LANG": "C.UTF-8"}
    return Binding(
        settings={"argv": [program], "network": False, "tools": False},
        directory=directory,
        environment=environment,
        spool=spool,
        runtime=runtime,
    )


async def _times(turn: Turn, count: int) -> list[float]:
    """Milliseconds of each turn."""
    times = []
    for number in range(count + WARM):
        began = time.perf_counter()
        await turn(number)
        times.append((time.perf_counter() - began) * 1000)
    return times[WARM:]


async def _ours(binding: Binding, count: int) -> list[float]:
    launcher = Launcher()
    await launcher.start()
    adapter = CodexAdapter(binding, launcher)
    await adapter.open(None)
    events = aiter(adapter.events())

    async def turn(number: int) -> None:
        work = Work(job=f"j{number}", attempt=1, prompt=PROMPT, message=f"m{number}", credential=None)
        assert isinstance(await adapter.submit(work), Accepted)
        while not isinstance(event := await anext(events), Finished):
            pass
        assert event.text == "done", event
        await adapter.recorded(event.key)

    try:
        return await _times(turn, count)
    finally:
        await adapter.close()
        await launcher.close()


async def _by_hand(binding: Binding, count: int) -> list[float]:
    server = await asyncio.create_subprocess_exec(
        *(str(word) for word in binding.settings["argv"]),
        "app-server",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=dict(binding.environment),
        cwd=binding.directory,
        limit=16 * 1024 * 1024,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    reader, writer = server.stdout, server.stdin

    async def until(name: str | None, method: str | None) -> Any:  # noqa: ANN401 - JSON
        while True:
            said = json.loads(await reader.readline())
            if (name is not None and said.get("id") == name) or (method is not None and said.get("method") == method):
                return said

    async def call(name: str, method: str, params: Any) -> Any:  # noqa: ANN401 - JSON
        writer.write(json.dumps({"id": name, "method": method, "params": params}).encode() + b"\n")
        return await until(name, None)

    await call("a", "initialize", {"clientInfo": {"name": "hand", "title": "Hand", "version": "1"}})
    writer.write(b'{"method":"initialized"}\n')
    wanted = {"cwd": str(binding.directory), "approvalPolicy": "on-request", "sandbox": "workspace-write"}
    thread = (await call("b", "thread/start", wanted))["result"]["thread"]["id"]

    async def turn(number: int) -> None:
        await call(f"t{number}", "turn/start", {"threadId": thread, "input": [{"type": "text", "text": PROMPT}]})
        assert (await until(None, "turn/completed"))["params"]["turn"]["status"] == "completed"

    try:
        return await _times(turn, count)
    finally:
        writer.close()
        await server.wait()
