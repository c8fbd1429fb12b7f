"""The resources of PROTOCOL, one file each."""

from starlette.routing import Route

from relay_receiver.hub.api import attachments, channels, enrolment, messages, receiver, state

routes: list[Route] = [
    *state.routes,
    *enrolment.routes,
    *channels.routes,
    *messages.routes,
    *attachments.routes,
    *receiver.routes,
]
