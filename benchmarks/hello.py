"""The floor of HTTP: a Starlette hello and a JSON POST without a database, on uvicorn as the hub runs it.

Run as `python -m benchmarks.hello FD`, with a listening socket.
"""

import json
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


if __name__ == "__main__":
    uvicorn.run(app, fd=int(sys.argv[1]), http="httptools", loop="asyncio", access_log=False, log_level="critical")
