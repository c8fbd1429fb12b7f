"""The lines of an agent, both directions, numbered, in one file: `NUMBER in|out LINE`. Standard library only.

The page cache is enough for them: it survives the death of every process, and a power cut takes the agent along.
"""

import os

from relay_receiver.processes import keeper_files as files

CHUNK = 256 * 1024


class Lines:
    """The file, appended to and read at the same time. A line that does not fit on the disk waits until it does."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = files.create(path, exclusive=False)
        self.unwritten = bytearray()
        self.number = 0
        self.size = 0
        """Bytes since the last cut."""

    def append(self, direction: str, line: bytes) -> int:
        """Number a line; it counts once `write` says so."""
        self.number += 1
        record = b"%d %s %s\n" % (self.number, direction.encode(), line)
        self.size += len(record)
        self.unwritten += record
        return self.number

    def write(self) -> bool:
        """Write what waits; False where the disk does not take it now."""
        try:
            while self.unwritten:
                done = os.write(self._file, self.unwritten)
                del self.unwritten[:done]
        except OSError:
            return False
        return True

    def read(self, offset: int, after: int) -> tuple[bytes, int, int]:
        """Some whole records from `offset` on that come after a number; none only where there are none yet.

        Returns:
            The records, the offset behind them, and the number of the last one.
        """
        while whole := self._whole(offset):
            offset += len(whole)
            if (last := _number(whole[whole.rfind(b"\n", 0, -1) + 1 :])) <= after:
                continue
            begin = 0
            while _number(whole[begin : begin + 32]) <= after:
                begin = whole.index(b"\n", begin) + 1
            return whole[begin:], offset, last
        return b"", offset, after

    def _whole(self, offset: int) -> bytes:
        size = CHUNK
        while b"\n" not in (data := os.pread(self._file, size, offset)):
            if len(data) < size:
                return b""
            size *= 2
        return data[: data.rfind(b"\n") + 1]

    def cut(self, through: int) -> bool:
        """Drop lines up to a number, their turn being recorded elsewhere; False where the disk does not allow it."""
        begin = self._offset_after(through)
        beside = f"{self._path}.new"
        try:
            new = files.create(beside, exclusive=False)
        except OSError:
            return False
        try:
            kept = 0
            while data := os.pread(self._file, CHUNK, begin + kept):
                files.write_all(new, data)
                kept += len(data)
            os.replace(beside, self._path)
        except OSError:
            os.close(new)
            files.remove(beside)
            return False
        os.close(self._file)
        self._file, self.size = new, kept + len(self.unwritten)
        return True

    def _offset_after(self, through: int) -> int:
        offset = 0
        with open(self._path, "rb") as old:
            for record in old:
                if not record.endswith(b"\n") or _number(record) > through:
                    break
                offset += len(record)
        return offset


def _number(record: bytes) -> int:
    return int(record[: record.index(b" ")])
