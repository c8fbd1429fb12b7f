"""How a call to a hub is made: with its fault points, its retries, and an answer that is one of protocol 1."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from relay_receiver.client.errors import HubError
from relay_receiver.client.rest import Rest
from relay_receiver.wire import faultpoint

Json = dict[str, Any]


class Calls:
    """Calls to one hub as one member; the calls of each noun are in a class of their own over this one."""

    def __init__(self, rest: Rest, *, patient: bool = True) -> None:
        self.rest = rest
        self._patient = patient

    async def _call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        idempotent: bool | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - passed on
    ) -> Json:
        return object_of(await self._any(method, path, body, params=params, idempotent=idempotent, timeout=timeout))

    async def _any(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, Any] | None = None,
        idempotent: bool | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - passed on
    ) -> Any:  # noqa: ANN401 - JSON
        point = _point(method, path, body)
        faultpoint.hit("call", point, "before")
        answer = await self.rest.call(
            method,
            path,
            json=body,
            params=params,
            retry=self._patient,
            idempotent=idempotent,
            timeout=timeout,
        )
        faultpoint.hit("call", point, "after")
        return answer


def _point(method: str, path: str, body: Mapping[str, Any] | None) -> str:
    """A call as fault points name it: without ids, with what it does or posts."""
    said = (body or {}).get("action")
    does = said if isinstance(said, str) else (body or {}).get("kind")
    return f"{method.lower()}-{path.split('/')[1]}" + (f"-{does}" if does else "")


def part(value: str) -> str:
    """An id as one part of a path."""
    return quote(value, safe="")


def object_of(answer: object) -> Json:
    """The answer as an object.

    Raises:
        HubError: it is none, so what answers is no hub of protocol 1.
    """
    if isinstance(answer, dict):
        return answer
    raise _strange()


def items(answer: object, name: str) -> list[Json]:
    """The list of objects that an answer is, or has under `name`; raises as `object_of` does."""
    found = answer.get(name) if isinstance(answer, dict) else answer
    if isinstance(found, list):
        return [object_of(each) for each in found]
    raise _strange()


def _strange() -> HubError:
    return HubError("The hub's answer is not one of protocol 1.", status=200, code="not_a_hub")
