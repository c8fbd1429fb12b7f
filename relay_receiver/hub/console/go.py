"""Where a browser goes after a form was taken: a page to read, which loading again does not send twice."""

import re

from starlette.responses import RedirectResponse

from relay_receiver.hub.console.render import address

_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\\\x7f-\x9f]{0,2000}")


def go(path: str, said: str | None = None, **query: str | int | None) -> RedirectResponse:
    """A 303 to a page of the console; `said` is a word of `said.SAID` for what was done."""
    return RedirectResponse(address(path, said=said, **query) if said or query else path, 303)


def local(wanted: str | None) -> str:
    """A path of this console, or `/` for everything else: no sign-in leads to another site."""
    return wanted if wanted and _LOCAL.fullmatch(wanted) and not wanted.startswith(("/sign-", "/static/")) else "/"
