import json
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from support_hub import LiveHub
from support_time import WITHIN

from relay_receiver.hub import owner as owners
from relay_receiver.hub.serve import ServeOptions, serve
from relay_receiver.wire.errors import RelayError

PROGRAM = """
import sys
from pathlib import Path
from relay_receiver.hub.serve import ServeOptions, serve
from relay_receiver.wire.errors import RelayError
data = Path(sys.argv[1])
try:
    sys.exit(serve(ServeOptions(port=0, data=data, ready_file=data.parent / "ready.json")))
except RelayError as error:
    print(error.code)
    sys.exit(9)
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "hub"


@pytest.fixture
def hub(data: Path) -> Iterator[subprocess.Popen[str]]:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM, str(data)], stdout=subprocess.PIPE, text=True)
    try:
        while not (data.parent / "ready.json").exists():
            assert program.poll() is None
        yield program
    finally:
        program.kill()
        program.communicate()


def join(data: Path, url: str) -> Any:
    connection = json.loads((data / "owner.json").read_text())
    body = {"invite": connection["code"], "clientSecret": "s" * 43, "identitySecret": "t" * 43, "name": "me"}
    return httpx.post(f"{url}/api/v1/enroll", json=body, trust_env=False)


def test_first_start_makes_the_owner_a_seat_and_a_stop_is_graceful(data: Path, hub: subprocess.Popen[str]) -> None:
    ready = json.loads((data.parent / "ready.json").read_text())
    assert ready["pid"] == hub.pid
    for path, mode in ((data, 0o700), (data / "owner.json", 0o600), (data / "hub.sqlite3", 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode, path
    assert join(data, ready["url"]).status_code == 200
    assert not (data / "owner.json").exists()
    again = owners.owner_code(data)
    assert (again, stat.S_IMODE(again.stat().st_mode)) == (data / "owner.json", 0o600)
    answer = httpx.get(f"{ready['url']}/api/v1/state", headers={"authorization": "Bearer " + "s" * 43}, trust_env=False)
    assert answer.json()["actor"]["role"] == "owner"
    hub.send_signal(signal.SIGTERM)
    assert hub.wait(WITHIN) == 0


def test_a_second_hub_on_the_same_data_is_refused(data: Path, hub: subprocess.Popen[str]) -> None:
    second = subprocess.run([sys.executable, "-c", PROGRAM, str(data)], capture_output=True, text=True, check=False)
    assert (second.returncode, second.stdout.strip(), second.stderr) == (9, "already_running", "")
    assert hub.poll() is None


def test_an_idle_hub_sleeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """uvicorn alone looks ten times a second whether it should stop."""
    looks: list[int] = []

    async def look(_server: uvicorn.Server, counter: int) -> bool:
        looks.append(counter)
        return True

    monkeypatch.setattr(uvicorn.Server, "on_tick", look)
    live = LiveHub(tmp_path / "hub").start()
    live.owner().get("/state")
    live.stop()
    assert looks == []


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"host": "192.0.2.1"}, "plain_http"),
        ({"host": "0.0.0.0", "plain_http": True}, "usage"),  # noqa: S104 - it is refused
        ({"host": "192.0.2.1", "plain_http": True}, "port_taken"),
        ({"tls_cert": Path("/nowhere/cert.pem")}, "bad_certificate"),
        ({"tls_key": Path("/nowhere/key.pem")}, "usage"),
    ],
)
def test_what_cannot_be_listened_to_is_one_sentence(data: Path, more: dict[str, Any], code: str) -> None:
    with pytest.raises(RelayError) as refused:
        serve(ServeOptions(port=0, data=data, **more))
    assert refused.value.code == code
    assert refused.value.sentence.endswith(".")


def test_a_data_directory_that_others_can_read_is_refused(data: Path) -> None:
    data.mkdir(mode=0o755)
    data.chmod(0o755)
    with pytest.raises(RelayError, match="open to others"):
        serve(ServeOptions(port=0, data=data))


def test_a_taken_port_is_one_sentence(data: Path, hub: subprocess.Popen[str], tmp_path: Path) -> None:
    port = int(json.loads((data.parent / "ready.json").read_text())["url"].rpartition(":")[2])
    with pytest.raises(RelayError) as refused:
        serve(ServeOptions(port=port, data=tmp_path / "another"))
    assert refused.value.code == "port_taken"
