"""The built wheel in an empty environment: what is in it, and the main job run from there."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support_time import WITHIN

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
AGENT = 'import json, sys; print(json.dumps({"text": "did " + json.load(sys.stdin)["requestId"][:1]}))'


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


class Installed:
    """An environment with nothing but the wheel; the libraries it needs are those of the tests."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        self.bin = folder / "venv" / "bin"
        [packages] = (folder / "venv" / "lib").glob("python*/site-packages")
        (packages / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "--python", str(self.bin / "python"), "--quiet"),
                *("--disable-pip-version-check", "install", "--no-deps", "--no-index", str(wheel)),
            ],
            check=True,
            timeout=5 * WITHIN,
        )

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=5 * WITHIN,
            cwd=self.folder,
            env={"PATH": os.defpath, "HOME": str(self.folder), "RELAY_HOME": str(self.home), "LANG": "C.UTF-8"},
        )

    def relay(self, *words: str) -> Any:
        done = self.run("relay", *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Iterator[Installed]:
    made = Installed(tmp_path_factory.mktemp("installed"), wheel)
    yield made
    made.run("relay", "--profile", "bob", "receiver", "stop", "--now")
    made.run("relay", "hub", "stop")


def test_the_wheel_holds_one_package_with_migrations_and_skill_inside(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"relay_receiver"}
    for kind in ("journal", "hub"):
        shipped = {name for name in names if name.startswith(f"relay_receiver/migrations/{kind}/versions/")}
        written = {f"relay_receiver/{path.relative_to(ROOT)}" for path in (ROOT / "migrations" / kind).rglob("0*.py")}
        assert shipped == written != set()
    assert "relay_receiver/skill/SKILL.md" in names
    assert "relay_receiver/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]


def test_it_runs_from_there_and_migrations_is_no_package_of_its_own(installed: Installed) -> None:
    code = "import importlib.util as u, relay_receiver as r; print(r.__file__, u.find_spec('migrations'))"
    where, spec = installed.run("python", "-c", code).stdout.split()
    assert Path(where).is_relative_to(installed.folder)
    assert spec == "None"
    code = "from relay_receiver.hub import schema as h; from relay_receiver.journal import schema as j; "
    found = installed.run("python", "-c", code + "print(h.migrations(), j.migrations())").stdout.split()
    assert [Path(each).parent.parent for each in found] == [Path(where).parent] * 2
    path = installed.relay("skill", "install")["path"]
    assert Path(path).read_text() == (ROOT / "skill" / "SKILL.md").read_text()


def test_the_main_job_from_the_wheel(installed: Installed) -> None:
    program = installed.folder / "agent.py"
    program.write_text(AGENT)
    project = installed.folder / "project"
    project.mkdir()
    installed.relay("hub", "start", "--port", "0")
    link = installed.relay("channels", "create", "lab")["invite"]["connect"].split()[2]
    installed.relay("connect", link, "--name", "bob")
    argv = json.dumps([str(installed.bin / "python"), str(program)])
    where = ("--adapter", "command", "--argv", argv, "--directory", str(project))
    assert installed.relay("--profile", "bob", "receiver", "start", *where)["state"] == "ready"
    answer = installed.relay(
        *("--profile", "default", "messages", "send", "--to", "bob", "--wait", "60", "--content", "go")
    )
    assert answer["delivery"]["stage"] == "answered"
    assert answer["result"]["content"] == "did j"
    assert answer["result"]["replyTo"] == answer["request"]["id"]
    assert installed.relay("--profile", "bob", "receiver", "stop")["state"] == "stopped"
    assert installed.relay("hub", "stop")["state"] == "stopped"


def test_the_selftest_from_the_wheel(installed: Installed) -> None:
    answer = installed.relay("receiver", "selftest", "--trials", "1")
    assert answer["held"]
    assert [row["hit"] for row in answer["rows"]] == [1]
