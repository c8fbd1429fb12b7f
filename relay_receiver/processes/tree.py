"""Whose child is whose, and which process is over: seen from outside, by pid."""

import psutil


def children(pid: int) -> list[int]:
    """The living children of a process, none where it is gone."""
    try:
        return [each.pid for each in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def gone(pid: int) -> bool:
    """The process has ended with all its threads, reaped or not."""
    try:
        found = psutil.Process(pid)
        return found.status() == psutil.STATUS_ZOMBIE and found.num_threads() <= 1
    except psutil.NoSuchProcess:
        return True
