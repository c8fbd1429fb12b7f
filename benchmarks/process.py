"""What the operating system knows of a process."""

import os
from pathlib import Path

import psutil

TICK = 1 / os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time; from the scheduler, to the nanosecond, where the system tells it."""
    total = 0
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
    except OSError:
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)
    return total / 1e9


def rss_bytes(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


def launcher_of(pid: int) -> int | None:
    """The launcher of a receiver."""
    for child in psutil.Process(pid).children():
        if any("launcher.py" in word for word in child.cmdline()):
            return int(child.pid)
    return None
