"""The floor of a push: whatever comes on any connection is written to all of them.

Run as `python -m benchmarks.broadcast FD`, with a listening socket.
"""

import asyncio
import socket
import sys

_open: set[asyncio.Transport] = set()


class _Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        _open.add(transport)

    def data_received(self, data: bytes) -> None:
        for each in _open:
            each.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        _open.discard(self._transport)


async def main() -> None:
    listener = socket.socket(fileno=int(sys.argv[1]))
    server = await asyncio.get_running_loop().create_server(_Echo, sock=listener)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
