"""What every test gets: a home of its own, no proxies, no profile of the person who runs the tests; and nothing of a
test may outlive it."""

import os
import time
from pathlib import Path

import psutil
import pytest
from support_time import WITHIN

_DROPPED = ("CODEX_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")
_LEFT = pytest.StashKey[list[str]]()


def pytest_configure() -> None:
    """Forget what the person who runs the tests has set."""
    for name in list(os.environ):
        if name in _DROPPED or name.startswith("RELAY_") or name.lower().endswith("_proxy"):
            del os.environ[name]


@pytest.fixture(autouse=True)
def isolated(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("RELAY_HOME", str(home / "relay"))
    return home


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run where a process of a test is still there."""
    if hasattr(session.config, "workerinput"):
        return  # the controller looks for all of its workers
    factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]  # no public way
    below = f"{factory.getbasetemp()}{os.sep}"
    end = time.monotonic() + WITHIN
    while (left := _processes(below)) and time.monotonic() < end:
        psutil.wait_procs(left, timeout=0.2)
    if left:
        session.config.stash[_LEFT] = [_told(each) for each in left]
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        for each in left:
            each.kill()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    said = [
        value for each in terminalreporter.getreports("passed") for name, value in each.user_properties if name == "say"
    ]
    if said:
        terminalreporter.section("tests to which this machine did not give what they need", yellow=True)
        for line in sorted(set(said)):
            terminalreporter.line(line)
    left = terminalreporter.config.stash.get(_LEFT, [])
    if left:
        terminalreporter.section("processes that tests left running", red=True)
        for line in left:
            terminalreporter.line(line)


def _processes(below: str) -> list[psutil.Process]:
    """The processes that have to do with a directory: by argument, environment or working directory."""
    return [each for each in psutil.process_iter() if each.pid != os.getpid() and below in _about(each)]


def _about(process: psutil.Process) -> str:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        return "\n".join([*process.cmdline(), *process.environ().values(), process.cwd()])
    except psutil.Error:
        return ""


def _told(process: psutil.Process) -> str:
    try:
        return f"{process.pid}: {' '.join(process.cmdline())} (RELAY_HOME={process.environ().get('RELAY_HOME')})"
    except psutil.Error:
        return f"{process.pid}: ended meanwhile"
