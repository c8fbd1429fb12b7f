"""Services of the user: what systemd makes of the unit, what launchd reads, and how readiness is told."""

import os
import plistlib
import shutil
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from relay_receiver.processes import notify, units
from relay_receiver.wire.errors import RelayError

SERVICE = units.Service(
    name="relay-receiver-abc",
    description="Relay receiver of b%b\nin lab",
    argv=["/bin/true", "receiver", "run", "--channel", 'a "b" $HOME %h'],
    stop=["/bin/true", "stop"],
    environment={"RELAY_HOME": '/tmp/with space/and"quote$x', "PATH": "/bin"},
)


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.fail("the unit is verified by systemd itself: apt-get install systemd")
    path = tmp_path / "relay-receiver-abc.service"
    path.write_text(SERVICE.unit())
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_LEVEL": "warning"}
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert "relay-receiver-abc" not in done.stderr, done.stderr


def test_a_stop_of_the_unit_leaves_keepers_and_agents_alone_and_waits_longer_than_the_receiver() -> None:
    unit = SERVICE.unit()
    assert "KillMode=process\n" in unit
    assert "OOMPolicy=continue\n" in unit
    assert "Type=notify\n" in unit
    assert f"TimeoutStopSec={units.STOP_SECONDS}\n" in unit
    from relay_receiver.receiver import receiver

    assert receiver.GRACE_SECONDS + receiver.LAST_WORDS_SECONDS < units.STOP_SECONDS


def test_words_reach_the_program_as_they_are() -> None:
    assert '"a \\"b\\" $$HOME %%h"' in SERVICE.unit()
    assert 'Environment="RELAY_HOME=/tmp/with space/and\\"quote$x"\n' in SERVICE.unit()
    assert "Description=Relay receiver of b%%b in lab\n" in SERVICE.unit()


KEYS = {
    "Label": str,
    "ProgramArguments": list,
    "EnvironmentVariables": dict,
    "RunAtLoad": bool,
    "KeepAlive": dict,
    "AbandonProcessGroup": bool,
    "ExitTimeOut": int,
    "ThrottleInterval": int,
}
"""What an agent of ours says, with its type as `launchd.plist(5)` has it: it passes over another key, or type."""


def test_launchd_reads_the_agent() -> None:
    written = SERVICE.plist()
    assert written.startswith(b"<?xml")
    read = plistlib.loads(written)
    assert {key: type(value) for key, value in read.items()} == KEYS
    assert all(isinstance(word, str) for word in [*read["ProgramArguments"], *read["EnvironmentVariables"].values()])
    assert read["ProgramArguments"] == list(SERVICE.argv)
    assert Path(read["ProgramArguments"][0]).is_absolute()
    assert read["EnvironmentVariables"] == SERVICE.environment


def test_launchd_keeps_jobs_alive_starts_again_after_a_crash_alone_and_waits_longer_than_the_receiver() -> None:
    read = plistlib.loads(SERVICE.plist())
    assert read["AbandonProcessGroup"] is True
    assert read["KeepAlive"] == {"SuccessfulExit": False}
    assert read["RunAtLoad"] is True
    assert read["ExitTimeOut"] == units.STOP_SECONDS


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A systemctl that writes down what it is asked, and refuses where a file says so."""
    tool = tmp_path / "bin" / "systemctl"
    tool.parent.mkdir()
    tool.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f'if [ -e {tmp_path}/refuses ]; then echo "Failed to connect to bus" >&2; exit 1; fi\n'
    )
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_enable_and_disable(manager: Path) -> None:
    path = units.install(SERVICE)
    units.begin(SERVICE.name)
    assert path.read_text() == SERVICE.unit()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert units.disable(SERVICE.name) is True
    assert not path.exists()
    assert units.disable(SERVICE.name) is False
    asked = (manager / "asked").read_text().splitlines()
    assert asked == [
        "--user daemon-reload",
        "--user enable --now relay-receiver-abc.service",
        "--user disable --now relay-receiver-abc.service",
        "--user daemon-reload",
    ]


def test_a_manager_that_refuses_is_told_in_one_sentence(manager: Path) -> None:
    (manager / "refuses").touch()
    with pytest.raises(RelayError, match="systemctl refused: Failed to connect to bus") as refused:
        units.install(SERVICE)
    assert refused.value.hint
    assert not units.path_of(SERVICE.name).exists()


def test_without_a_manager_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(RelayError, match="no service manager"):
        units.install(SERVICE)
    assert not units.path_of(SERVICE.name).exists()


def test_readiness_is_told_to_the_manager_that_asked_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        assert notify.tell("READY=1")
        assert listening.recv(64) == b"READY=1"
    monkeypatch.delenv("NOTIFY_SOCKET")
    assert not notify.tell("READY=1")
