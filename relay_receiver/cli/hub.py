"""`relay hub`: the shared hub, in the foreground or in the background of this machine."""

import contextlib
import json
import logging
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from relay_receiver.cli.acting import refuse_in_a_job
from relay_receiver.cli.options import Group
from relay_receiver.cli.output import emit
from relay_receiver.client import profiles
from relay_receiver.processes import background, environment, files, paths
from relay_receiver.processes.identity import ProcessIdentity
from relay_receiver.processes.lock import InstanceLock
from relay_receiver.wire.errors import RelayError

F = TypeVar("F", bound=Callable[..., Any])

PORT = 7423
START_SECONDS = 30.0
STOP_SECONDS = 30.0
_LOCK = "lock"
_LOG = "hub.log"
_FACTS = "hub.json"
_OWNER = "owner.json"


def _data_option(command: F) -> F:
    return click.option(
        "--data", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Where the hub keeps its data."
    )(command)


def _serving(command: F) -> F:
    for option in reversed(
        (
            click.option("--host", default="127.0.0.1", help="The address to listen on. Default: this machine only."),
            click.option("--port", type=click.IntRange(0, 65535), default=PORT, help=f"Default {PORT}."),
            _data_option,
            click.option("--database", metavar="URL", help="Another database than SQLite in the data directory."),
            click.option("--allow-host", "allow_host", multiple=True, metavar="HOST", help="A name it is reached by."),
            click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"),
            click.option("--tls-key", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE"),
            click.option("--plain-http", is_flag=True, help="Without TLS beyond this machine: in a private network."),
        )
    ):
        command = option(command)
    return command


@click.group(cls=Group)
def hub() -> None:
    """Run the shared hub: serve, start, stop, status."""


@hub.command("serve")
@_serving
@click.option("--ready-file", type=click.Path(path_type=Path), metavar="FILE", help="Gets {url, pid} once it listens.")
def serve_command(data: Path | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Run the hub in the foreground."""
    refuse_in_a_job()
    report = background.reporter()
    folder = (data or paths.hub_dir()).expanduser().absolute()
    try:
        with _alone(folder):
            code = _serve(folder, report, **said)
    except RelayError as error:
        report({"error": error.sentence, "code": error.code, "hint": error.hint})
        raise
    click.get_current_context().exit(code)


def _serve(folder: Path, report: Callable[[dict[str, Any]], None], **said: Any) -> int:  # noqa: ANN401 - click's options
    from relay_receiver.hub.serve import ServeOptions, serve

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)

    def ready(told: Mapping[str, Any]) -> None:
        owner = str(told["owner"]) if told.get("owner") else None
        value = {"url": told["url"], "pid": told["pid"], "warning": told.get("warning"), "ownerFile": owner}
        report(value)
        lines = [f"The hub runs at {told['url']}. Ctrl-C stops it."]
        lines += [str(told["warning"])] if told.get("warning") else []
        then = f"relay connection import --stdin < {shlex.quote(owner)}" if owner else "relay channels create lab"
        emit(value, lines, then=then)

    return serve(ServeOptions(data=folder, **said), ready=ready)


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the data directory: one hub process on one SQLite database."""
    lock = InstanceLock(folder / _LOCK)
    if not lock.acquire():
        raise RelayError(
            f"A hub already runs on {folder}.", code="already_running", hint="relay hub status, or relay hub stop"
        )
    lock.announce()
    try:
        yield
    finally:
        lock.release()


@hub.command("start")
@_serving
def start_command(data: Path | None, **said: Any) -> None:  # noqa: ANN401 - click's options
    """Run the hub in the background; the first start makes your profile, too."""
    refuse_in_a_job()
    folder = (data or paths.hub_dir()).expanduser().absolute()
    now = _facts(folder)
    answer = {"state": "already_running", **now} if now.get("pid") else _started(folder, said)
    made = _own(folder)
    value = {**answer, "data": str(folder), "profile": made.name if made else None}
    lines = [f"The hub runs at {answer.get('url')}, process {answer.get('pid')}."]
    if answer.get("warning"):
        lines.append(str(answer["warning"]))
    if made:
        lines.append(f"You are {made.agent_name}, its owner; the profile is {made.name}.")
    emit(value, lines, then="relay channels create lab" if made else "relay status")


def _started(folder: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    argv = [sys.executable, "-m", "relay_receiver.cli.main", "hub", "serve", "--data", str(folder), *_words(said)]
    log = files.private_dir(folder) / _LOG
    told = background.spawn(argv, log=log, environment=environment.own(), seconds=START_SECONDS)
    _remember(folder)
    return {"state": "ready", "url": told["url"], "pid": told["pid"], "warning": told.get("warning")}


def _words(said: Mapping[str, Any]) -> Iterator[str]:
    """The options of `start`, as the words that `serve` understands."""
    for name, value in said.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            yield option
        elif isinstance(value, tuple):
            for each in value:
                yield from (option, str(each))
        elif value is not None and value is not False:
            yield from (option, str(value.absolute() if isinstance(value, Path) else value))


def _own(folder: Path) -> profiles.Profile | None:
    """The owner's profile `default`, made where there is none and the hub still waits for its owner."""
    import asyncio

    from relay_receiver.client.enrol import import_connection

    path = folder / _OWNER
    if profiles.DEFAULT in profiles.names() or not path.exists():
        return None
    return asyncio.run(import_connection(files.read_private(path).decode(), profile=profiles.DEFAULT))


@hub.command("stop")
@_data_option
def stop_command(data: Path | None) -> None:
    """Stop the hub of this machine; returns when it is gone."""
    refuse_in_a_job()
    folder = _folder(data)
    holder = _holder(folder)
    if holder is not None and not background.stop(holder, grace=STOP_SECONDS):
        raise RelayError(
            f"The hub (process {holder.pid}) has not gone yet.", code="still_running", hint=f"tail {folder / _LOG}"
        )
    value = {"state": "stopped", "pid": holder.pid if holder else None, "data": str(folder)}
    emit(value, "The hub is stopped.", then="relay hub start")


@hub.command("status")
@_data_option
def status_command(data: Path | None) -> None:
    """Show whether a hub runs on this machine, and where. Exit status 1 if none does."""
    value = running(data)
    if value["state"] == "stopped":
        emit(value, f"No hub runs on this machine (data: {value['data']}).", then="relay hub start")
        click.get_current_context().exit(1)
    lines = [f"The hub runs at {value['url']}, process {value['pid']}.", f"data: {value['data']}, log: {value['log']}"]
    emit(value, lines, then="relay status")


@hub.command("owner-code")
@_data_option
@click.option("--database", metavar="URL", help="The hub's database, where it is not in the data directory.")
def owner_code_command(data: Path | None, database: str | None) -> None:
    """Make another connection file for the hub's owner."""
    refuse_in_a_job()
    from relay_receiver.hub.serve import owner_code

    path = owner_code(_folder(data), database)
    then = f"relay connection import --stdin < {shlex.quote(str(path))}"
    emit({"path": str(path)}, f"It is in {path}, good once and for 10 minutes.", then=then)


def running(data: Path | None = None) -> dict[str, Any]:
    """The hub of this machine: `{state: running|stopped, url, pid, data, log}`."""
    folder = _folder(data)
    now = _facts(folder)
    state = "running" if now.get("pid") else "stopped"
    return {"state": state, "url": None, "pid": None, **now, "data": str(folder), "log": str(folder / _LOG)}


def _facts(folder: Path) -> dict[str, Any]:
    """The address and process of the hub that runs on `folder`; empty where none does."""
    holder = _holder(folder)
    if holder is None:
        return {}
    try:
        told = json.loads(files.read_private(folder / _FACTS))
    except (FileNotFoundError, ValueError):
        told = {}
    return {"url": told.get("url") if told.get("pid") == holder.pid else None, "pid": holder.pid}


def _holder(folder: Path) -> ProcessIdentity | None:
    return InstanceLock(folder / _LOCK).holder()


def _folder(data: Path | None) -> Path:
    """The data directory that was meant: the one of the last `hub start`, unless told otherwise."""
    if data is not None:
        return data.expanduser().absolute()
    try:
        return Path(json.loads(files.read_private(paths.home() / _FACTS))["data"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return paths.hub_dir()


def _remember(folder: Path) -> None:
    files.write_private(files.private_dir(paths.home()) / _FACTS, json.dumps({"data": str(folder)}).encode())
