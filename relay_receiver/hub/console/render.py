"""Pages and pieces of pages, from templates in which everything is escaped."""

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from relay_receiver.hub import channels
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
    return made


def address(path: str, /, **query: str | int | None) -> str:
    """A path of the console with a query; what is None is left out. `#` in the path ends up behind the query."""
    bare, hash_, anchor = path.partition("#")
    said = urlencode({name: value for name, value in query.items() if value is not None})
    return quote(bare) + (f"?{said}" if said else "") + hash_ + anchor


def render(request: Request, template: str, *, status: int = 200, **context: Any) -> Response:  # noqa: ANN401 - what a template needs
    """A page of somebody who is signed in.

    Beside `context` a template has `person` (Actor), `csrf` (the hidden field), `channels` ({id, name} each), `needs`
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
    return {
        "person": person,
        "csrf": hidden(session),
        "channels": store.read_now(channels.list_channels, person),
        "needs": store.read_now(needs.count, store, person),
        "path": request.url.path,
        "said": sentence(request.query_params.get("said")),
        "cursor": request.state.cursor,
    }


def _answer(request: Request, template: str, status: int, context: dict[str, Any]) -> Response:
    found: Environment = request.app.state.console.templates
    return HTMLResponse(found.get_template(template).render(context), status)
