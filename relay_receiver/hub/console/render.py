"""Pages and pieces of pages, from templates in which everything is escaped."""

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from relay_receiver.hub import channels, ids
from relay_receiver.hub.api.given import store_of
from relay_receiver.hub.console import assets, needs
from relay_receiver.hub.console.filters import FILTERS
from relay_receiver.hub.console.said import sentence
from relay_receiver.hub.console.session import Session, session_of

FOLDER = Path(__file__).parent / "templates"


def environment(found: dict[str, assets.Asset]) -> Environment:
    """The templates, with `asset(name)` for the address of a style sheet or script."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS)
    made.globals["asset"] = lambda name: f"/static/{name}?v={found[name].tag}"
    made.globals["address"] = address
    made.globals["operation"] = ids.token
    return made


def address(path: str, /, **query: str | int | None) -> str:
    """A path of the console with a query; what is None is left out. `#` in the path ends up behind the query."""
    bare, hash_, anchor = path.partition("#")
    said = urlencode({name: value for name, value in query.items() if value is not None})
    return quote(bare) + (f"?{said}" if said else "") + hash_ + anchor


def render(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:  # noqa: ANN401 - what a template needs
    """A page of somebody who is signed in.

    Beside `context` a template has `person` (Actor), `csrf` (the hidden field), `channels` ({id, name} each),
    `place_name(id)`, `operation()` for a new operation id, `needs`
    (how many things need this person), `path`, `said` (a sentence or None) and `cursor`, its place in the feed.
    """
    return _answer(request, template, status, {**_around(request), **context})


def fragment(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:  # noqa: ANN401 - as above
    """A piece of a page, which a script puts in its place: `person` and `csrf` beside `context`."""
    session = session_of(request)
    return _answer(request, template, status, {"person": session.person, "csrf": hidden(session), **context})


def bare(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:  # noqa: ANN401 - as above
    """A page of nobody in particular: the sign-in, an error."""
    said = sentence(request.query_params.get("said"))
    return _answer(request, template, status, {"said": said, "path": request.url.path, **context})


def hidden(session: Session) -> Markup:
    """The field that every form which posts carries."""
    return Markup('<input type="hidden" name="csrf" value="{}" autocomplete="off">').format(session.csrf)


def _around(request: Request) -> dict[str, Any]:
    session, store = session_of(request), store_of(request)
    person = session.person
    joined = store.read_now(channels.list_channels, person)
    called = {each["id"]: each["name"] for each in joined}
    return {
        "person": person,
        "csrf": hidden(session),
        "channels": joined,
        "place_name": lambda channel: called.get(channel, channel),
        "needs": store.read_now(needs.count, store, person),
        "path": request.url.path,
        "said": sentence(request.query_params.get("said")),
        "cursor": request.state.cursor,
    }


def _answer(request: Request, template: str, status: int, context: dict[str, Any]) -> Response:
    found: Environment = request.app.state.console.templates
    return _Page(found.get_template(template), context, status)


class _Page(Response):
    """A page that is written in a thread when it is sent: a long text holds nobody else up."""

    media_type = "text/html"

    def __init__(self, template: Template, context: dict[str, Any], status: int) -> None:
        super().__init__(status_code=status)
        self._template, self._context = template, context

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write and send it."""
        written = await asyncio.to_thread(self._template.render, self._context)
        self.body = written.encode()
        self.headers["content-length"] = str(len(self.body))
        await super().__call__(scope, receive, send)
