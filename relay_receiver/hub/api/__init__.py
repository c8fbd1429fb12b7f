"""The resources of PROTOCOL, one file each."""

from starlette.routing import Route

from relay_receiver.hub.api import (
    asks,
    attachments,
    channels,
    console,
    controls,
    docs,
    enrolment,
    messages,
    receiver,
    search,
    state,
    tasks,
)

routes: list[Route] = [
    *state.routes,
    *enrolment.routes,
    *channels.routes,
    *console.routes,
    *messages.routes,
    *attachments.routes,
    *receiver.routes,
    *asks.routes,
    *controls.routes,
    *docs.routes,
    *tasks.routes,
    *search.routes,
]
