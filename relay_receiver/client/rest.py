"""One hub over HTTP: calls, typed errors, time limits."""

import asyncio
import json as codec
import random
import ssl
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from relay_receiver.client import retry as rules
from relay_receiver.client.address import is_loopback, normal
from relay_receiver.client.direct import Direct
from relay_receiver.client.errors import HubAway, HubError, Unauthorized
from relay_receiver.wire.errors import RelayError

__all__ = ["HubAway", "HubError", "Rest", "Unauthorized"]

BASE = "/api/v1"
CONNECT_SECONDS = 5.0
TIMEOUT_SECONDS = 30.0
"""A whole call, from first byte out to last byte in, with all its tries."""
ANSWER_BYTES = 64 * 1024 * 1024
"""The most that is read of one answer: a page of 200 of the longest messages, escaped, fits."""
KEPT_SECONDS = 60.0
"""An idle connection is kept this long: less than hubs keep theirs (75 s), so that none is used while it closes."""
_HEADERS = {"Accept": "application/json", "User-Agent": "relay-receiver"}
_TIMEOUT = {"connect": CONNECT_SECONDS, "pool": CONNECT_SECONDS, "read": None, "write": None}
_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class Rest:
    """Calls to one hub with one credential; an async context manager.

    Args:
        url: the hub's address.
        token: sent as `Authorization: Bearer`; None for the calls that need none.
        timeout: seconds for a whole call, all tries together.
        transport: stands in for the network in tests.
    """

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout: float = TIMEOUT_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Any] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.url = normal(url)
        self._token = token
        self._timeout = timeout
        self._sleep, self._jitter, self._now = sleep, jitter, now
        self._way = transport or _way(self.url)

    def __repr__(self) -> str:
        return f"Rest({self.url!r})"

    def headers(self) -> dict[str, str]:
        """What authenticates a call. A secret: for a request, not for a log."""
        return {"Authorization": f"Bearer {self._token}"} if self._token else {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        await self._way.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        content: tuple[bytes, str] | None = None,
        params: Mapping[str, Any] | None = None,
        retry: bool = False,
        idempotent: bool | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - one limit over connect, send and read
        bearer: str | None = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """One call; the answer is its JSON, or None where it has no body.

        Args:
            path: below `/api/v1`; ids in it are the caller's to quote.
            json: the body.
            content: a body of another type instead: its bytes and the type.
            params: a None is left out.
            retry: make it again, shortly, where that is safe (`retry.repeatable`).
            idempotent: whether doing it twice is doing it once; by default GET, PUT and DELETE are.
            bearer: a credential other than this client's own, for this call.

        Raises:
            HubAway: no answer.
            HubError: the hub answered with an error; `Unauthorized` for 401.
        """
        if content is None and json is not None:
            content = codec.dumps(json).encode(), "application/json"
        body, kind = content or (None, None)
        headers = {"Content-Type": kind} if kind else {}
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer}"
        data = await self.exchange(
            method, path, body=body, headers=headers, params=params, retry=retry, idempotent=idempotent, timeout=timeout
        )
        if not data:
            return None
        try:
            return codec.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._strange(200) from error

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        retry: bool = False,
        idempotent: bool | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - one limit over connect, send and read
    ) -> bytes:
        """The same with bytes both ways; raises as `call` does."""
        safe = method in _IDEMPOTENT if idempotent is None else idempotent
        request = httpx.Request(
            method,
            self.url + BASE + path,
            content=body,
            params={name: value for name, value in (params or {}).items() if value is not None},
            headers={**_HEADERS, **self.headers(), **(headers or {})},
            extensions={"timeout": _TIMEOUT},
        )
        left = timeout or self._timeout
        for failures in range(1, rules.TRIES + 1):
            began = time.monotonic()
            try:
                return await self._once(request, left)
            except (HubAway, HubError) as error:
                wait = rules.pause(error, failures, jitter=self._jitter())
                left -= time.monotonic() - began + wait
                over = failures == rules.TRIES or wait > rules.PATIENCE or left <= 0
                if not retry or over or not rules.repeatable(error, idempotent=safe):
                    raise
            await self._sleep(wait)
        raise AssertionError("the last try returns or raises")

    async def _once(self, request: httpx.Request, seconds: float) -> bytes:
        try:
            async with asyncio.timeout(seconds):
                response = await self._way.handle_async_request(request)
                try:
                    data = await self._read(response)
                finally:
                    await response.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
            raise self._away(error, sent=False) from error
        except (httpx.HTTPError, httpx.StreamError, TimeoutError) as error:
            raise self._away(error, sent=True) from error
        if response.is_success:
            return data
        raise self._refused(response, data)

    async def _read(self, response: httpx.Response) -> bytes:
        data = bytearray()
        async for part in response.aiter_bytes():
            data += part
            if len(data) > ANSWER_BYTES:
                raise HubError(
                    f"The hub at {self.url} answered with more than {ANSWER_BYTES} bytes.",
                    status=response.status_code,
                    code="answer_too_large",
                )
        return bytes(data)

    def _refused(self, response: httpx.Response, data: bytes) -> HubError:
        status = response.status_code
        if response.is_redirect:
            return HubError(
                f"The address {self.url} redirects elsewhere; a hub does not.",
                status=status,
                code="redirected",
                hint="Use the address that the hub itself printed.",
            )
        try:
            said = codec.loads(data)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            said = {}
        sentence, code = said.pop("error", None), said.pop("code", None)
        kind = Unauthorized if status == 401 else HubError
        hint = said.pop("hint", None)
        if status == 401 and hint is None:
            hint = "Join again: relay connect URL#CODE --name NAME"
        return kind(
            sentence if isinstance(sentence, str) else f"The hub at {self.url} answered with status {status}.",
            status=status,
            code=code if isinstance(code, str) else "unauthorized" if status == 401 else f"http_{status}",
            hint=hint if isinstance(hint, str) else None,
            retry_after=rules.retry_after(response.headers.get("Retry-After"), self._now),
            data=said,
        )

    def _strange(self, status: int) -> HubError:
        return HubError(
            f"What answers at {self.url} is not a hub.", status=status, code="not_a_hub", hint="Check the address."
        )

    def _away(self, error: Exception, *, sent: bool) -> HubAway:
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            return HubAway(f"The hub at {self.url} does not answer in time.", sent=sent)
        if sent:
            return HubAway(f"The connection to the hub at {self.url} was cut before it answered.", sent=sent)
        return HubAway(f"The hub at {self.url} cannot be reached.", sent=sent)


def tls(url: str) -> ssl.SSLContext | None:
    """What a hub's certificate is checked against (`SSL_CERT_FILE` counts); None where the address has no TLS."""
    return httpx.create_ssl_context() if url.startswith("https:") else None


def _way(url: str) -> httpx.AsyncBaseTransport:
    """How a hub is reached: directly where it is on this machine, else as the environment's proxies say."""
    local = is_loopback(url)
    if local and url.startswith("http:"):
        return Direct(kept_seconds=KEPT_SECONDS, most=ANSWER_BYTES)
    limits = httpx.Limits(max_connections=16, max_keepalive_connections=2, keepalive_expiry=KEPT_SECONDS)
    if local:
        return httpx.AsyncHTTPTransport(verify=httpx.create_ssl_context(), trust_env=False, limits=limits)
    try:
        return _Proxied(httpx.AsyncClient(verify=httpx.create_ssl_context(), limits=limits))
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise RelayError(
            "The proxy that the environment names cannot be used.",
            code="bad_proxy",
            hint="Check HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or name the hub's host in NO_PROXY.",
        ) from error


class _Proxied(httpx.AsyncBaseTransport):
    """A client of httpx, for the sake of its proxies."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        await self._client.aclose()
