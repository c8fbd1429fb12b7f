"""The real hub in a process of its own, every request timed. Run as `python -m benchmarks.watched_hub DATA READY`.

`GET /benchmark/log` tells the requests answered since the last look as `[[method, path, began, answered], ...]`, in
monotonic nanoseconds; sockets are told with the method WS. Rates are as good as off.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from relay_receiver.hub import serve as serving
from relay_receiver.hub.app import App
from relay_receiver.hub.options import HubOptions
from relay_receiver.hub.store import Store

RATE_FACTOR = 1e6


class Watched(App):
    """The hub, looked at from outside."""

    def __init__(self, store: Store, options: HubOptions) -> None:
        super().__init__(store, options)
        self._seen: list[list[Any]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/benchmark/log":
            told = [each for each in self._seen if _over(each)]
            self._seen = [each for each in self._seen if not _over(each)]
            body = json.dumps(told).encode()
            headers = [(b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        record = [scope.get("method", "WS"), scope["path"], time.monotonic_ns(), None]
        self._seen.append(record)

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                record[3] = time.monotonic_ns()
            await send(message)

        await super().__call__(scope, receive, noting)


def _over(record: list[Any]) -> bool:
    """A request that is not answered yet is told next time."""
    return record[3] is not None or record[0] == "WS"


def build(store: Store, options: HubOptions) -> App:
    return Watched(store, HubOptions(hosts=options.hosts, rate_factor=RATE_FACTOR))


def main(data: str, ready: str) -> int:
    serving.build = build
    return serving.serve(serving.ServeOptions(port=0, data=Path(data), ready_file=Path(ready)))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
