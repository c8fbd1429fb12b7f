"""Which process is which, with real ones."""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from relay_receiver.processes import identity
from relay_receiver.processes.identity import Life, ProcessIdentity, identify, life, started_by


def own() -> ProcessIdentity:
    found = identify(os.getpid(), "a nonce")
    assert found is not None
    return found


def test_this_process_lives_and_is_read_back() -> None:
    found = own()
    assert life(found) is Life.ALIVE
    assert ProcessIdentity.from_json(found.to_json()) == found
    assert ProcessIdentity.from_json(found.to_json().encode()) == found


def test_a_number_that_was_given_anew_is_another_process() -> None:
    assert life(replace(own(), started=own().started - 1.0)) is Life.GONE


def test_nothing_of_another_boot_lives() -> None:
    assert life(replace(own(), boot="another")) is Life.GONE


def test_where_the_start_is_not_known_a_living_number_proves_nothing() -> None:
    assert life(replace(own(), started=0.0)) is Life.UNKNOWN


def test_what_has_ended_is_gone_also_before_it_is_waited_for() -> None:
    with subprocess.Popen(["sleep", "6000"]) as child:
        found = identify(child.pid)
        assert found is not None
        assert life(found) is Life.ALIVE
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert life(found) is Life.GONE
        assert identify(child.pid) is None
    assert life(found) is Life.GONE


def test_a_name_with_parentheses_and_spaces_is_no_trap(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "300"]) as child:
        found = identify(child.pid)
        assert found is not None
        assert life(found) is Life.ALIVE
        child.kill()


@pytest.mark.parametrize("text", ["", "{}", "[]", "1", "null", '{"pid": "x"}', "{", '{"pid": 1, "started": 2}'])
def test_what_names_no_process_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ProcessIdentity.from_json(text)


def test_neither_clock_nor_time_zone_moves_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    before = own()
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        monkeypatch.setattr(time, "time", lambda: 0.0)
        assert own() == before
        assert life(before) is Life.ALIVE
    finally:
        monkeypatch.undo()
        time.tzset()


def test_processes_are_found_by_their_nonce_wherever_they_went() -> None:
    nonce = os.urandom(16).hex()
    environment = {**os.environ, "RELAY_NONCE": nonce}
    with subprocess.Popen(["sleep", "6000"], env=environment, start_new_session=True) as child:
        assert started_by(nonce) == [child.pid]
        assert started_by(nonce[:-1]) == []
        child.kill()
    assert started_by(nonce) == []


def test_the_boot_clock_goes_on() -> None:
    first = identity.boot_seconds()
    assert first > 0
    assert identity.boot_seconds() >= first
    assert identity.boot_id() == identity.boot_id() != ""
    assert identity.machine_id()


ASK = "from relay_receiver.processes.identity import descends_from_job as d; print(d())"
BELOW = (
    f"import os, subprocess, sys; os.environ.pop('RELAY_JOB', None); subprocess.run([sys.executable, '-c', {ASK!r}])"
)


@pytest.mark.parametrize(
    ("program", "job", "answer"),
    [(ASK, True, "True"), (BELOW, True, "True"), (ASK, False, "False"), (BELOW, False, "False")],
)
def test_what_descends_from_a_job_is_known_also_where_the_variable_was_dropped(
    program: str, answer: str, *, job: bool
) -> None:
    environment = {**os.environ, **({"RELAY_JOB": "/some/file"} if job else {})}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == answer
