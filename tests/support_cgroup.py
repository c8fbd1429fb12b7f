"""A service manager for tests: it runs a unit in a real control group, and does at its end what the unit says.

Where this machine lets no control group be made, the descendants of the test stand in for one, and the run says so.
"""

import contextlib
import ctypes
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support_time import WITHIN

from relay_receiver.processes.tree import gone
from relay_receiver.processes.units import Service

SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of prctl: orphans become children of this process."""


class Group:
    """The processes of a unit. `made` is the folder of its control group, None where descendants stand in for it."""

    def __init__(self, made: Path | None) -> None:
        self.made = made
        if made is None:
            ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)

    def join(self) -> list[str]:
        """What a program is started with, so that it is in the group from its first instruction on."""
        if self.made is None:
            return []
        return ["/bin/sh", "-c", f'echo $$ > "{self.made}/cgroup.procs" && exec "$@"', "sh"]

    def members(self) -> set[int]:
        if self.made is None:
            return {each.pid for each in psutil.Process().children(recursive=True) if not gone(each.pid)}
        return {int(pid) for pid in (self.made / "cgroup.procs").read_text().split()}

    def kill(self) -> None:
        for pid in self.members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        if self.made is None:
            ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)
        end = time.monotonic() + WITHIN
        while self.made is not None and time.monotonic() < end:
            self.kill()
            with contextlib.suppress(OSError):  # what was killed is still there
                self.made.rmdir()
                return


def _own(controller: str) -> Iterator[Path]:
    """The folder of this process's own group, in each hierarchy that has a controller; "" is any hierarchy."""
    paths = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        paths[names] = path
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found = Path(mount + paths.get("", "/"))
            there = (found / "cgroup.subtree_control").read_text().split() if controller and found.is_dir() else []
            if not controller or controller in there:
                yield found
        elif kind == "cgroup":
            names = next((each for each in paths if each and set(each.split(",")) <= set(options.split(","))), None)
            if names is not None and (not controller or controller in names.split(",")):
                yield Path(mount + paths[names])


@contextlib.contextmanager
def group(request: pytest.FixtureRequest, controller: str = "") -> Iterator[Group]:
    """A control group below this process's own, with a controller where one is named."""
    tried = []
    made: Path | None = None
    for own in _own(controller):
        path = own / f"relay-test-{os.getpid()}-{time.monotonic_ns()}"
        try:
            path.mkdir()
            made = path
            break
        except OSError as error:
            tried.append(f"{path}: {error.strerror}")
    if made is None:
        why = "; ".join(tried) or f"no hierarchy {f'with {controller} ' if controller else ''}is mounted"
        request.node.user_properties.append(("say", f"{request.node.nodeid} ran without a control group ({why})"))
    found = Group(made)
    try:
        yield found
    finally:
        found.close()


class Manager:
    """Runs one unit as systemd would, as far as its text says how."""

    def __init__(self, service: Service, of: Group, place: Path) -> None:
        self.service = service
        self.group = of
        self.says = dict(re.findall(r"^(\w+)=(.*)$", service.unit(), re.MULTILINE))
        self.main: subprocess.Popen[bytes] | None = None
        self._address = place / "notify"
        self._log = place / "unit.log"

    def start(self) -> int:
        """Start the main process, and wait until it is ready in the way that the unit's type has; its pid."""
        assert self.says["Type"] == "notify"
        self._address.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hearing, self._log.open("ab") as log:
            hearing.bind(str(self._address))
            hearing.settimeout(WITHIN)
            environment = {**self.service.environment, "NOTIFY_SOCKET": str(self._address)}
            argv = [*self.group.join(), *self.service.argv]
            self.main = subprocess.Popen(
                argv, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
            assert hearing.recv(64) == b"READY=1", self._log.read_text()
        return self.main.pid

    def stop(self) -> int:
        """Run what the unit has for a stop; the exit status of the main process, which is waited for."""
        assert self.main is not None
        subprocess.run(self.service.stop, env=self.service.environment, capture_output=True, check=True, timeout=WITHIN)
        return self.main.wait(WITHIN)

    def main_was_killed(self) -> None:
        """Its main process dies of SIGKILL: a crash, the kernel out of memory, a stop that took too long."""
        assert self.main is not None
        self.main.kill()
        self.main.wait(WITHIN)
        if self.says.get("KillMode", "control-group") != "process":
            self.group.kill()

    def one_ran_out_of_memory(self) -> None:
        """The kernel has killed a process of the unit for want of memory."""
        assert self.main is not None
        if self.says.get("OOMPolicy", "stop") != "continue":
            self.main.terminate()
            self.main.wait(WITHIN)

    def restarts(self) -> bool:
        """Whether it starts the unit again after its main process was killed."""
        return self.says.get("Restart", "no") in {"on-failure", "always", "on-abnormal", "on-abort"}
