"""Results at the hub that the stream has not shown yet: a hub that is restored just then may have lost them."""

from collections.abc import Collection, Iterable

from relay_receiver.jobs.job import Job


class Unseen:
    """By message id, the event number that the hub gave each."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def after(self, watermark: int) -> int:
        """The number behind which they all are; `watermark` where there is none before it."""
        return min((watermark, *(number - 1 for number in self._numbers.values())))

    def newest(self) -> str:
        """The one with the highest number: where the hub has it, it has them all.

        Raises:
            ValueError: there is none.
        """
        return max(self._numbers, key=self._numbers.__getitem__)

    def add(self, message: str, number: int | None, *, watermark: int) -> None:
        """The hub has stored this result; the stream has come to `watermark`."""
        if number is not None and number > watermark:
            self._numbers[message] = number

    def load(self, jobs: Iterable[Job]) -> None:
        """Those of a process before this one."""
        self._numbers |= {job.result: job.result_event for job in jobs if job.result and job.result_event}

    def missed(self, shown: Collection[str], watermark: int) -> bool:
        """The stream has shown these messages and come to `watermark`. Whether it has passed one without showing it."""
        for message in shown:
            self._numbers.pop(message, None)
        return any(number <= watermark for number in self._numbers.values())

    def clear(self) -> None:
        """All that are here were asked for."""
        self._numbers.clear()
