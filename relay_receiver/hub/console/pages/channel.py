"""A channel: its messages, and writing to it."""

import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from relay_receiver.hub import channels, message_views
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.body import query_integer
from relay_receiver.hub.console.render import render
from relay_receiver.hub.console.session import person
from relay_receiver.wire.limits import STATE_MESSAGES

_POSTED = re.compile(r"/channels/[^/]+/messages")


def takes_files(path: str) -> bool:
    """Whether a form sent to this path may carry attachments."""
    return _POSTED.fullmatch(path) is not None


async def page(request: Request) -> Response:
    """A page of a channel's messages, the newest unless an older one is asked for."""
    who = person(request)
    channel = channels.need(who, request.path_params["id"])
    found = await store_of(request).read(
        message_views.history,
        who.workspace,
        channel,
        after=None,
        before=query_integer(request, "before"),
        limit=STATE_MESSAGES,
    )
    return render(request, "channel.html", channel=channel, messages=found["messages"], more=found["more"])


routes = [Route("/channels/{id}", page, methods=["GET"])]
