import asyncio
from collections.abc import Awaitable, Callable

import httpx
import pytest
from support_time import WITHIN

from relay_receiver.client.direct import Direct

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers each request with the next of some bytes; an empty one closes the connection."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
                self.requests.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0)
                writer.write(answer)
                if not answer or answer.endswith(b"<close>"):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed.set()
        finally:
            writer.close()


Case = Callable[[Direct, Server, str], Awaitable[None]]


def run(answers: list[bytes], case: Case, *, kept: float = 60.0, most: int = 1000) -> None:
    async def main() -> None:
        server = Server(answers)
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        direct = Direct(kept_seconds=kept, most=most)
        async with asyncio.timeout(WITHIN), listening:
            try:
                await case(direct, server, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/x?a=1")
            finally:
                await direct.aclose()

    asyncio.run(main())


def get(url: str) -> httpx.Request:
    return httpx.Request("GET", url)


def test_a_request_goes_out_and_its_answer_comes_back() -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        answer = await direct.handle_async_request(httpx.Request("POST", url, content=b"hello", headers={"X-Y": "z"}))
        assert (answer.status_code, answer.content) == (200, b"ok")
        request = server.requests[0]
        assert request.startswith(b"POST /x?a=1 HTTP/1.1\r\n")
        assert request.endswith(b"\r\n\r\nhello")
        assert b"X-Y: z\r\n" in request

    run([OK], case)


def test_a_connection_is_used_again() -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        for _ in range(3):
            await direct.handle_async_request(get(url))
        assert server.connections == 1

    run([OK] * 3, case)


def test_calls_at_the_same_time_have_a_connection_each() -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        answers = await asyncio.gather(*(direct.handle_async_request(get(url)) for _ in range(4)))
        assert [each.content for each in answers] == [b"ok"] * 4
        assert server.connections == 4
        assert len(direct._idle) == 2

    run([OK] * 4, case)


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        OK + b"stray bytes",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
)
def test_a_connection_that_may_be_spoilt_is_not_used_again(first: bytes) -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        assert (await direct.handle_async_request(get(url))).content == b"ok"
        assert (await direct.handle_async_request(get(url))).content == b"ok"
        assert server.connections == 2

    run([first, OK], case)


def test_an_idle_connection_is_given_up_in_time() -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        await direct.handle_async_request(get(url))
        await direct.handle_async_request(get(url))
        assert server.connections == 2

    run([OK, OK], case, kept=-1.0)


def test_an_idle_connection_that_the_hub_closed_is_noticed() -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        await direct.handle_async_request(get(url))
        link, lost = direct._idle[0], asyncio.Event()
        link.connection_lost = lambda _: lost.set()  # type: ignore[method-assign]  # to know when
        await lost.wait()
        assert (await direct.handle_async_request(get(url))).content == b"ok"
        assert server.connections == 2

    run([b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<close>", OK], case)


def test_an_answer_in_chunks_is_put_together() -> None:
    async def case(direct: Direct, _: Server, url: str) -> None:
        assert (await direct.handle_async_request(get(url))).content == b"abcde"

    run([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n"], case)


def test_an_answer_without_a_body() -> None:
    async def case(direct: Direct, _: Server, url: str) -> None:
        answer = await direct.handle_async_request(get(url))
        assert (answer.status_code, answer.content) == (204, b"")
        assert (await direct.handle_async_request(get(url))).content == b"ok"

    run([b"HTTP/1.1 204 No Content\r\n\r\n", OK], case)


def test_an_answer_that_is_too_long_is_cut() -> None:
    async def case(direct: Direct, _: Server, url: str) -> None:
        assert 1000 < len((await direct.handle_async_request(get(url))).content) < 1_000_000
        assert direct._idle == []

    run([b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000], case)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n<close>",
        b"rubbish\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
def test_what_is_no_whole_answer_is_an_error_after_sending(answer: bytes) -> None:
    async def case(direct: Direct, _: Server, url: str) -> None:
        with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
            await direct.handle_async_request(get(url))
        assert (await direct.handle_async_request(get(url))).content == b"ok"

    run([answer, OK], case)


def test_a_call_that_is_given_up_takes_its_connection_along() -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        call = asyncio.ensure_future(direct.handle_async_request(get(url)))
        while not server.requests:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.closed.wait()
        assert direct._idle == []

    run([b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n"], case)


def test_a_header_cannot_smuggle_another() -> None:
    async def case(direct: Direct, server: Server, url: str) -> None:
        with pytest.raises(httpx.LocalProtocolError):
            await direct.handle_async_request(httpx.Request("GET", url, headers={"X": "a\r\nY: b"}))
        assert server.requests == []

    run([OK], case)
