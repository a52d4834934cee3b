"""The HTTP client of the house passes the contract check, so does an adapter of another library,
and clients that break a promise are caught.
"""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace

from interlock import ProtocolError, Unreachable
from interlock.http11.client import HttpFetch
from interlock.http11.connection import IncomingResponse
from interlock.http11.fetch import ConnectionLost, Request
from interlock.http11.proxies import Proxies
from interlock.http11.safe_fetch import SafeFetch
from interlock.testing import check_fetch
from tests.transport.http_peers import both_loops


class OverHttpx2:
    """A Fetch of somebody's own, as an author would write it: the seam asks for nothing that only
    our client can do.
    """

    def __init__(self) -> None:
        self.client = httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None)
        self.closed = asyncio.Event()

    async def __call__(self, request: Request) -> OtherAnswer:
        """Send it; raise what the seam names."""
        for name, value in request.headers:
            if set(name + value) & set("\r\n\0"):
                raise ValueError(f"the header {name!r} cannot be sent")
        built = self.client.build_request(
            request.method, request.url, headers=request.headers, content=request.body
        )
        return OtherAnswer(await self.unless_closed(self.client.send(built, stream=True)), self)

    async def unless_closed(self, doing: Any) -> Any:
        """What it does, or Unreachable."""
        task = asyncio.ensure_future(doing)
        end = asyncio.ensure_future(self.closed.wait())
        try:
            await asyncio.wait([task, end], return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise Unreachable("closed")
            return task.result()
        except httpx2.ConnectError as bad:
            raise Unreachable(str(bad)) from bad
        except httpx2.HTTPError as bad:
            raise ConnectionLost(str(bad) or type(bad).__name__) from bad
        finally:
            task.cancel()
            end.cancel()
            await asyncio.wait([task, end])

    async def aclose(self) -> None:
        """Close all."""
        self.closed.set()
        await self.client.aclose()


class OtherAnswer:
    """Its answers."""

    def __init__(self, response: httpx2.Response, fetch: OverHttpx2) -> None:
        self.status = response.status_code
        self.headers = dict(response.headers)
        self._response = response
        self._fetch = fetch

    async def read(self, limit: int) -> bytes:
        """All of it."""
        parts = []
        size = 0
        async for piece in self.chunks():
            parts.append(piece)
            size += len(piece)
            if size > limit:
                await self.aclose()
                raise ProtocolError("too long")
        return b"".join(parts)

    async def chunks(self):
        """Piece by piece."""
        try:
            async for piece in self._response.aiter_bytes():
                yield piece
        except httpx2.HTTPError as bad:
            raise ConnectionLost(str(bad) or type(bad).__name__) from bad

    async def aclose(self) -> None:
        """No more."""
        await self._response.aclose()


def ours() -> HttpFetch:
    """The one of the house."""
    return HttpFetch(proxies=Proxies())


@both_loops
async def test_the_client_of_the_house_keeps_the_contract():
    """Under both loops."""

    async def make() -> HttpFetch:
        return ours()

    await check_fetch(make)


@both_loops
async def test_the_guarded_fetcher_keeps_the_contract():
    """But for redirects, which it refuses (SEC-15)."""

    async def make() -> SafeFetch:
        return SafeFetch(loopback=True, proxies=Proxies())

    await check_fetch(make, refuses_redirects=True)
    with pytest.raises(AssertionError, match="a redirect is returned like any other response"):
        await check_fetch(make)


async def test_another_library_can_keep_the_contract():
    """So nothing is asked for that only one client can do."""

    async def make() -> OverHttpx2:
        return OverHttpx2()

    await check_fetch(make)


class Faulty(HttpFetch):
    """One that will break a promise."""

    def __init__(self) -> None:
        super().__init__(proxies=Proxies())


class Shouting(Faulty):
    """Sends another method."""

    async def __call__(self, request):
        """Everything is a POST."""
        return await super().__call__(replace(request, method="POST"))


class Forgetful(Faulty):
    """Sends only one header of a name."""

    async def __call__(self, request):
        """The last one."""
        return await super().__call__(
            replace(request, headers=tuple(dict(request.headers).items()))
        )


class Capital(Faulty):
    """Gives names as they came."""

    async def __call__(self, request):
        """In capitals, say."""
        answer = await super().__call__(request)
        answer.headers = {name.title(): value for name, value in answer.headers.items()}
        return answer


class Following(Faulty):
    """Goes where it is sent."""

    async def __call__(self, request):
        """Twice."""
        answer = await super().__call__(request)
        if "location" in answer.headers:
            return await super().__call__(
                replace(request, url=request.url.replace("/moved", "/echo"))
            )
        return answer


class Raising(Faulty):
    """Raises for a status that is an answer."""

    async def __call__(self, request):
        """As some libraries do."""
        answer = await super().__call__(request)
        if answer.status >= 300:
            raise Unreachable(f"status {answer.status}")
        return answer


class Wrapped:
    """An answer that something is done to."""

    def __init__(self, answer: IncomingResponse) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = answer.headers

    async def read(self, limit):
        """As it is."""
        return await self._answer.read(limit)

    def chunks(self):
        """As they are."""
        return self._answer.chunks()

    async def aclose(self):
        """As it is."""
        await self._answer.aclose()


class Unbounded(Faulty):
    """Reads whatever comes."""

    async def __call__(self, request):
        """However long."""
        return self.IncomingResponse(await super().__call__(request))

    class IncomingResponse(Wrapped):
        """Without a limit."""

        async def read(self, limit):
            """All."""
            return await self._answer.read(1 << 40)


class Waiting(Faulty):
    """Gives the pieces once it has all of them."""

    async def __call__(self, request):
        """Late."""
        return self.IncomingResponse(await super().__call__(request))

    class IncomingResponse(Wrapped):
        """Whole."""

        async def chunks(self):
            """One."""
            yield await self._answer.read(1 << 20)


class Trusting(Faulty):
    """Takes a body that broke off for one that has ended."""

    async def __call__(self, request):
        """Silently."""
        return self.IncomingResponse(await super().__call__(request))

    class IncomingResponse(Wrapped):
        """Never broken."""

        async def chunks(self):
            """What came."""
            try:
                async for piece in self._answer.chunks():
                    yield piece
            except Unreachable:
                return


class Plain(Faulty):
    """Lets the errors of the system out."""

    async def __call__(self, request):
        """As they are."""
        try:
            return await super().__call__(request)
        except Unreachable as bad:
            raise ConnectionError(str(bad)) from bad


class Once(Faulty):
    """Gives up where a kept connection was closed."""

    def _acquire_connection(self, pool, *, fresh=False):
        if fresh:
            raise Unreachable("the connection was closed")
        return super()._acquire_connection(pool)


class Again(Faulty):
    """Sends again what a kept connection swallowed, whatever it was."""

    async def __call__(self, request):
        """And again."""
        return await super().__call__(replace(request, again=True))


class Twice(Faulty):
    """Sends everything twice, to be sure."""

    async def __call__(self, request):
        """And again."""
        if request.url.endswith("/last"):
            await (await super().__call__(request)).aclose()
        return await super().__call__(request)


class Alarmed(Faulty):
    """Takes every misfortune for a lost request."""

    async def __call__(self, request):
        """Whatever it was."""
        try:
            return await super().__call__(request)
        except Unreachable as bad:
            raise ConnectionLost(str(bad)) from bad


class Lenient(Faulty):
    """Cuts a header where it cannot go on."""

    async def __call__(self, request):
        """Silently."""
        headers = tuple(
            (name.split("\r")[0], value.split("\r")[0].split("\n")[0].split("\0")[0])
            for name, value in request.headers
        )
        return await super().__call__(replace(request, headers=headers))


class Clinging(Faulty):
    """Keeps connections that nobody reads from any more."""

    async def __call__(self, request):
        """Whole."""
        return self.IncomingResponse(await super().__call__(request))

    class IncomingResponse(Wrapped):
        """Never closed."""

        async def aclose(self):
            """Do nothing."""


class Stubborn(Faulty):
    """Goes on with a request that was given up."""

    async def __call__(self, request):
        """Behind the caller's back."""
        return await asyncio.shield(asyncio.ensure_future(super().__call__(request)))


class Endless(Faulty):
    """Does not close."""

    closing = 0

    async def aclose(self):
        """Only when asked again."""
        self.closing += 1
        if self.closing > 1:
            await super().aclose()


async def test_who_gives_redirects_does_not_refuse_them():
    """The other promise about redirects is one that can be broken too."""

    async def make() -> HttpFetch:
        return ours()

    async def raising() -> Raising:
        return Raising()

    for maker, words in (
        (make, "a redirect did not raise Unreachable"),
        (raising, "does not have the status 307"),
    ):
        with pytest.raises(AssertionError, match=words):
            await check_fetch(maker, refuses_redirects=True)


BROKEN = {
    Shouting: "method, path, headers and body unchanged",
    Forgetful: "method, path, headers and body unchanged",
    Capital: "lower-case names",
    Following: "a redirect is returned like any other response",
    Raising: "a redirect is returned like any other response",
    Waiting: "arrives piece by piece",
    Unbounded: "a byte more raises ProtocolError",
    Trusting: "a broken connection raises ConnectionLost",
    Plain: "a broken connection raises ConnectionLost",
    Alarmed: "a port without a server raises Unreachable with a message",
    Once: "a request that may be repeated succeeds",
    Twice: "a request that may be repeated succeeds",
    Again: "a request that must not be repeated raises ConnectionLost",
    Lenient: "a header that contains a line break raises ValueError",
    Clinging: "closing a response before its end closes the connection",
    Stubborn: "cancelling a request closes its connection",
    Endless: "closing the client ends running requests",
}


WAITED_FOR = {Waiting, Clinging, Stubborn, Endless}
"""Faults that show by the end of the patience."""


@pytest.mark.parametrize(
    "kind, words", BROKEN.items(), ids=lambda value: getattr(value, "__name__", "")
)
async def test_a_broken_promise_is_found(kind: type[Faulty], words: str):
    """One fault, one promise, and the words name it."""
    made: list[Faulty] = []

    async def make() -> Faulty:
        made.append(kind())
        return made[-1]

    try:
        with pytest.raises(AssertionError, match=f"an HTTP client promises that .*{words}"):
            await check_fetch(make, patience=4.0 if kind in WAITED_FOR else 60.0)
    finally:
        for fetch in made:
            await HttpFetch.aclose(fetch)
