"""The floor of HTTP: a Starlette hello and a JSON POST without a database, on uvicorn as the hub runs it.

Run as `python -m benchmarks.hello FD`, with a listening socket.
"""

import json
import socket
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


async def hello(request: Request) -> Response:
    del request
    return Response(b'{"hello":"world"}', media_type="application/json")


async def posted(request: Request) -> Response:
    body = await request.json()
    return Response(json.dumps({"id": "m1", **body}).encode(), media_type="application/json")


app = Starlette(routes=[Route("/", hello), Route("/messages", posted, methods=["POST"])])


def main(descriptor: int) -> None:
    # Not by uvicorn's own `fd`: it takes the socket for a Unix one, and so leaves Nagle's algorithm on.
    listener = socket.socket(fileno=descriptor)
    config = uvicorn.Config(app, http="httptools", loop="asyncio", access_log=False, log_level="critical")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(int(sys.argv[1]))
