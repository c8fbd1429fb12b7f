"""The keeper of one job of a command: a claim, a process, an end. Standard library only.

The claim file is made exclusively, and is on the disk, before the program starts: whoever has it first, keeper or
recovering receiver, decides whether this attempt ever starts. The end is one atomic file.
"""

import os
import selectors
import socket
import subprocess

from relay_receiver.processes import keeper_faults as faults
from relay_receiver.processes import keeper_files as files
from relay_receiver.processes.keeper import Keeper
from relay_receiver.processes.keeper_connection import CHUNK, Json


class CommandKeeper(Keeper):
    """Gives the program its input, and takes its answer up to a bound."""

    def __init__(self, order: Json, born_with: socket.socket) -> None:
        super().__init__(order, born_with)
        self.stdin = bytearray(order["stdin"].encode("utf-8", "surrogateescape"))
        self.stdout = bytearray()

    def begin(self) -> bool:
        """Claim the attempt, then start it. A claim whose program did not start is given back."""
        faults.hit("keeper.claim.before")
        try:
            self.record = files.create(self.path("keeper"), exclusive=True)
            files.write_all(self.record, self.family.identity())
            os.link(self.path("keeper"), self.path("claim"))
        except FileExistsError as error:
            if self.record >= 0:
                files.remove(self.path("keeper"))
            self.refuse(error, "claimed")
            return False
        except OSError as error:
            files.remove(self.path("keeper"))
            self.refuse(error)
            return False
        faults.hit("keeper.claim.linked")
        try:
            files.sync_directory(self.spool)
            self.receivers.listen()
            self.start()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            files.remove(self.path("claim"))
            files.remove(self.path("keeper"))
            files.remove(self.order["socket"])
            self.refuse(error)
            return False
        self.started()
        if self.child is not None and self.child.stdin is not None:
            self.selector.register(self.child.stdin, selectors.EVENT_WRITE, self._on_stdin)
        return True

    def _on_stdin(self) -> None:
        """Give the program its input, then EOF."""
        stream = self.child.stdin if self.child is not None else None
        if stream is None:
            return
        try:
            sent = os.write(stream.fileno(), self.stdin[:CHUNK])
            del self.stdin[:sent]
        except BlockingIOError:
            return
        except OSError:
            self.stdin.clear()
        if not self.stdin:
            self.forget(stream)

    def on_stdout(self) -> None:
        """Take the answer, up to its bound."""
        if self.child is None or self.child.stdout is None:
            return
        data = self.take(self.child.stdout)
        room = self.bound - len(self.stdout)
        self.stdout += data[:room]
        if len(data) > room:
            self.overflowed()

    def finish(self) -> list[bytes | bytearray]:
        """Take what is still in the pipes."""
        if self.child is not None:
            self.drain(self.child.stdout, self.on_stdout)
            self.drain(self.child.stderr, self.on_stderr)
        return self.ending(self.stdout)
