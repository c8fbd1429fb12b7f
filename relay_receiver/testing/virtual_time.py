"""An event loop whose time jumps: nothing waits, and the same history takes the same way each time."""

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

AT_ONCE = 50_000
"""Rounds of the loop in which no time passes, at the most: more is a task that spins."""


class Stuck(BaseException):
    """Nothing will ever happen any more, or something happens for ever and no time passes."""


class Inline(Executor):
    """Runs each call where it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:  # noqa: ANN401 - as its base
        """Call it now."""
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it belongs to whoever asks for the result
            done.set_exception(error)
        return done


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time stands still while anything can run, and then jumps to the next timer. Does no I/O and has no threads."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jump(self))

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self.now

    def run_in_executor(self, executor: Executor | None, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # noqa: ANN401 - as its base  # an executor runs inline
        """Call it now, in the executor's way."""
        done: asyncio.Future[Any] = self.create_future()
        call = (executor or Inline()).submit(func, *args)
        if (error := call.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(call.result())
        return done

    def pass_time(self, seconds: float) -> None:
        """Let all tasks run for this long."""
        self.run_until_complete(asyncio.sleep(seconds))


class _Jump(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise Stuck("nothing is left that could happen")
        self._rounds = self._rounds + 1 if timeout <= 0 else 0
        if self._rounds > AT_ONCE:
            raise Stuck("something runs for ever, and no time passes")
        self._loop.now += max(0.0, timeout)
        return []
