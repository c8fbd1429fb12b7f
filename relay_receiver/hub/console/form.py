"""Reading a form that a browser sent, within bounds, its proof checked."""

from collections.abc import Iterable
from typing import cast

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from relay_receiver.hub import ids
from relay_receiver.hub.attachments import MOST
from relay_receiver.hub.body import check_storable
from relay_receiver.hub.console import csrf
from relay_receiver.hub.console.session import Session
from relay_receiver.hub.errors import Refusal, malformed
from relay_receiver.wire import limits

FIELDS = 2000
"""Fields of one form, at the most."""


class Form(dict[str, str]):
    """The fields of a form; of a name that stands more than once the last one, `all` gives each.

    Line ends are single line feeds; files are in `files` by the name of their field, those that nobody chose left out.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], files: dict[str, list[UploadFile]]) -> None:
        self._pairs = [(name, value.replace("\r\n", "\n").replace("\r", "\n")) for name, value in pairs]
        super().__init__(self._pairs)
        self.files = files

    def all(self, name: str) -> list[str]:
        """Every value of a field, such as the boxes that are checked."""
        return [value for each, value in self._pairs if each == name]

    def filled(self, name: str) -> str | None:
        """A field, or None where it is missing or left empty."""
        return self.get(name, "").strip() or None


def operation() -> str:
    """An operation id, for a form that names none."""
    return f"console:{ids.token()}"


async def form(request: Request) -> Form:
    """The form of a request. A page gets it only after Origin and `csrf` were checked."""
    return cast("Form", request.state.form)


async def read(request: Request, session: Session | None) -> Form:
    """Read a form and check its `csrf`, which a sign-in has none of yet.

    Raises:
        Refusal: 400, it cannot be read; 403, its proof is wrong; 413.
    """
    try:
        data = await request.form(max_files=MOST, max_fields=FIELDS, max_part_size=limits.BODY_BYTES)
    except HTTPException as error:
        raise malformed(f"The form cannot be read: {error.detail}") from None
    found = _parsed(data)
    if session is not None:
        csrf.check_token(found.get(csrf.FIELD, ""), session.csrf)
    return found


def _parsed(data: FormData) -> Form:
    pairs: list[tuple[str, str]] = []
    files: dict[str, list[UploadFile]] = {}
    for name, value in data.multi_items():
        check_storable(name)
        if isinstance(value, str):
            check_storable(value)
            pairs.append((name, value))
        elif value.filename:
            check_storable(value.filename)
            if (value.size or 0) > limits.ATTACHMENT_BYTES:
                most = limits.ATTACHMENT_BYTES
                raise Refusal(413, "too_large", f"An attachment has at most {most} bytes.", limit=most)
            files.setdefault(name, []).append(value)
    return Form(pairs, files)
