"""Fetches a URL through `SafeFetch`: robots.txt, redirects hop by hop, and the HTTP cache."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import urldefrag, urlsplit
from weakref import WeakValueDictionary

from interlock import (
    BlockedAddress,
    InterlockError,
    ProtocolError,
    Request,
    Response,
    SafeFetch,
    TimedOut,
    ToolError,
    Unreachable,
)
from interlock.caches import BoundedCache
from interlock.untrusted.invisible import one_line as shown

from . import errors, http_cache
from .http_cache import CachedResponse
from .results import Redirect, Robots
from .robots import MOST, RobotsRules
from .settings import FetchSettings

OnProgress = Callable[[int, int], None]
"""Receives the number of bytes so far and in total."""
Check = Callable[[str, Mapping[str, str]], None]
"""Checks the URL and headers of a response before its body is read.

Raises ToolError to reject it.
"""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ACCEPT = (
    "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, application/pdf;q=0.8, "
    "text/*;q=0.7, */*;q=0.5"
)
_CONTROLS = re.compile("[\x00-\x1f\x7f]")
_DAY = 86_400.0
_MINUTE = 60.0
_ROBOTS_REDIRECTS = 5  # RFC 9309, 2.3.1.2
_MOST_SITES = 64  # sites whose robots.txt is cached


class FetchedResponse(NamedTuple):
    """A response and its origin. `url` is the final one after redirects; `age` is in seconds."""

    url: str
    status: int
    headers: dict[str, str]
    body: bytes
    hops: list[Redirect]
    robots: Robots
    cached: bool
    stale: bool
    age: float


class _Call(NamedTuple):
    """One call: its principal and options."""

    whose: str | None
    fresh: bool
    check: Check | None
    on_progress: OnProgress | None

    def place(self, url: str) -> str:
        """The cache key of a response for this caller; URLs contain no space."""
        return f"{self.whose or ''} {url}"


class _RobotsAnswer(NamedTuple):
    """A site's robots.txt: its rules, or None and the reason. `until` is when to fetch it again."""

    rules: RobotsRules | None
    why: str
    until: float


class WebFetcher:
    """Fetches URLs. `fetch` must return redirects, so that each of them is checked here."""

    def __init__(
        self, settings: FetchSettings, fetch: SafeFetch, now: Callable[[], float] = time.time
    ) -> None:
        self.settings = settings
        self.now = now
        self._fetch = fetch
        self._kept: BoundedCache[str, CachedResponse] = BoundedCache(
            settings.kept, most_size=settings.kept_bytes
        )
        self._manners: BoundedCache[str, _RobotsAnswer] = BoundedCache(_MOST_SITES)
        self._rooms: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        # locks for fetching a site's robots.txt
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._headers = {
            "user-agent": settings.user_agent,
            "accept": _ACCEPT,
            "accept-encoding": "gzip, deflate",
        }

    async def get(
        self,
        url: str,
        *,
        watched: bool,
        whose: str | None = None,
        fresh: bool = False,
        check: Check | None = None,
        on_progress: OnProgress | None = None,
    ) -> FetchedResponse:
        """Fetch a URL.

        `watched` means that a person requested it, so robots.txt is not asked; `fresh` bypasses the
        cache.

        `whose` identifies the caller: each caller has a separate cache, so that nobody can find out
        what others read. Callers without an identity share one. Raises ToolError, with advice, for
        anything that is not a page.
        """
        call = _Call(whose, fresh, check, on_progress)
        if watched:
            robots: Robots = "not asked"
        elif self.settings.robots == "ask":
            robots = "allowed"
        else:
            robots = "ignored"
        hops: list[Redirect] = []
        limit = asyncio.timeout(self.settings.seconds)
        try:
            async with limit:
                return await self._followed(address(url), hops, robots, call)
        except InterlockError as bad:
            raise (
                bad if isinstance(bad, ToolError) else errors.refusal(bad, hops, self.settings)
            ) from None
        except TimeoutError:
            if not limit.expired():
                raise
            late = TimedOut(
                f"There was no complete answer within {self.settings.seconds:g} seconds. "
                "Try again, or fetch something smaller."
            )
            raise errors.refusal(late, hops, self.settings) from None

    async def _followed(
        self, url: str, hops: list[Redirect], robots: Robots, call: _Call
    ) -> FetchedResponse:
        self._fetch.examine(url)
        while True:
            if robots == "allowed":
                await self._ask_robots(url)
            kept, how = await self._answer(url, call)
            location = kept.headers.get("location")
            if kept.status not in REDIRECTS or location is None:
                if not 200 <= kept.status < 300:
                    raise errors.no_page(url, kept.status, kept.headers, hops)
                cached = how != "new"
                stale = how == "stale"
                age = http_cache.age(kept, self.now()) if cached else 0.0
                return FetchedResponse(
                    url, kept.status, kept.headers, kept.body, hops, robots, cached, stale, age
                )
            onward = tidy(self._fetch.onward(Request("GET", url), kept.status, location).url)
            hops.append(Redirect(url, kept.status, onward, _site(url) != _site(onward)))
            if len(hops) > self.settings.redirects:
                raise errors.too_many(hops, self.settings)
            url = onward

    async def _answer(self, url: str, call: _Call) -> tuple[CachedResponse, str]:
        """One response, and whether it is new, cached, or cached and stale."""
        kept = self._kept.get(call.place(url))
        if kept is not None and not http_cache.is_for(kept, self._headers):
            kept = None
        if kept is not None and not call.fresh and http_cache.is_fresh(kept, self.now()):
            self._look(kept.url, kept.status, kept.headers, call.check)
            return kept, "kept"
        if call.fresh:
            more = {"cache-control": "no-cache"}
        elif kept is not None:
            more = http_cache.conditions(kept)
        else:
            more = {}
        try:
            new = await self._asked(url, more, call)
        except BlockedAddress:
            raise
        except Unreachable:
            if kept is None or not http_cache.holds_in_need(kept, self.now()):
                raise
            return kept, "stale"
        if new.status == 304 and kept is not None:
            kept = http_cache.renewed(kept, new.headers, new.asked, new.came)
            self._keep(kept, call)
            return kept, "kept"
        if new.status >= 500 and kept is not None and http_cache.holds_in_need(kept, self.now()):
            return kept, "stale"
        self._keep(new, call)
        return new, "new"

    def _keep(self, kept: CachedResponse, call: _Call) -> None:
        place = call.place(kept.url)
        may = http_cache.may_keep(kept.status, kept.headers, shared=call.whose is None)
        if may and (http_cache.lifetime(kept) or http_cache.conditions(kept)):
            size = (
                len(kept.body)
                + sum(len(name) + len(value) for name, value in kept.headers.items())
                + 500
            )
            self._kept.put(place, kept, size)
        else:
            self._kept.pop(place)

    async def _asked(self, url: str, more: Mapping[str, str], call: _Call) -> CachedResponse:
        """Send the request to the server."""
        async with self._room(url):
            asked = self.now()
            answer = await self._fetch(
                Request("GET", url, tuple({**self._headers, **more}.items()))
            )
            try:
                headers = dict(answer.headers)
                status = answer.status
                body = b""
                if status < 300:
                    self._look(url, status, headers, call.check)
                    body = await _body(answer, self.settings.bytes, call.on_progress)
            finally:
                await answer.aclose()
        return CachedResponse(
            url, status, headers, body, {**self._headers, **more}, asked, self.now()
        )

    def _room(self, url: str) -> asyncio.Semaphore:
        """The semaphore that limits parallel requests to a site."""
        return self._rooms.setdefault(_site(url), asyncio.Semaphore(self.settings.at_once))

    @staticmethod
    def _look(url: str, status: int, headers: Mapping[str, str], check: Check | None) -> None:
        if check is not None and 200 <= status < 300:
            check(url, headers)

    # robots.txt

    async def _ask_robots(self, url: str) -> None:
        """Raise ToolError if robots.txt forbids the page, or is unavailable."""
        site = _site(url)
        async with self._asking.setdefault(
            site, asyncio.Lock()
        ):  # of parallel calls, one fetches it for all
            said = self._manners.get(site)
            if said is None or said.until <= self.now():
                said = await self._manners_of(site)
                self._manners.put(site, said)
        if said.rules is None:
            raise errors.robots_silent(url, site, said.why)
        line = await asyncio.to_thread(said.rules.forbids, url)
        if line is not None:
            raise errors.not_for_robots(url, site, line, self.settings.token)

    async def _manners_of(self, site: str) -> _RobotsAnswer:
        """Fetch a site's robots.txt (RFC 9309, 2.3.1).

        Raises Unreachable if the site itself cannot be reached.
        """
        url = f"{site}/robots.txt"
        for hop in range(_ROBOTS_REDIRECTS + 1):
            try:
                async with self._room(url):
                    status, headers, text = await self._robots_at(url)
                if status in REDIRECTS and "location" in headers:
                    url = tidy(
                        self._fetch.onward(Request("GET", url), status, headers["location"]).url
                    )
                    continue
            except BlockedAddress as bad:
                if not hop and bad.status is None:  # the site itself is blocked
                    raise
                return _RobotsAnswer(
                    None,
                    f"it redirects to a blocked address: {bad.words}",
                    self._later(_MINUTE),
                )
            except ProtocolError as bad:
                return _RobotsAnswer(None, str(bad), self._later(_MINUTE))
            except Unreachable as bad:
                if not hop:
                    raise
                return _RobotsAnswer(
                    None, f"it redirects to {shown(url)}. {bad}", self._later(_MINUTE)
                )
            if status == 429 or status >= 500:
                return _RobotsAnswer(None, f"status {status}", self._later(_MINUTE))
            rules = await asyncio.to_thread(RobotsRules, text, self.settings.token)
            kept = CachedResponse(url, status, headers, b"", {}, self.now(), self.now())
            return _RobotsAnswer(
                rules, "", self._later(min(max(http_cache.lifetime(kept), 10 * _MINUTE), _DAY))
            )
        return _RobotsAnswer(
            await asyncio.to_thread(RobotsRules, "", self.settings.token), "", self._later(_DAY)
        )

    async def _robots_at(self, url: str) -> tuple[int, dict[str, str], str]:
        """The response at one address: status, headers, and the beginning of the text."""
        answer = await self._fetch(Request("GET", url, tuple(self._headers.items())))
        try:
            return (
                answer.status,
                dict(answer.headers),
                await _beginning(answer) if 200 <= answer.status < 300 else "",
            )
        finally:
            await answer.aclose()

    def _later(self, seconds: float) -> float:
        return self.now() + seconds


async def _body(answer: Response, most: int, on_progress: OnProgress | None) -> bytes:
    """Read a body to its end; `on_progress` receives the progress if the size is known.

    Raises ProtocolError over `most` bytes.
    """
    length = answer.headers.get("content-length", "")
    total = (
        int(length)
        if on_progress is not None
        and length.isdigit()
        and len(length) < 16
        and "content-encoding" not in answer.headers
        else 0
    )
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.chunks():
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise ProtocolError(f"the answer has more than {most} bytes")
        if total and on_progress is not None:
            on_progress(size, total)
    return b"".join(pieces)


async def _beginning(answer: Response) -> str:
    """The part of a robots.txt that is used; an incomplete last line is dropped."""
    data = bytearray()
    async for piece in answer.chunks():
        data += piece
        if len(data) > MOST:
            del data[MOST:]
            del data[data.rfind(b"\n") + 1 :]
            break
    return data.decode("utf-8", "replace")


def _site(url: str) -> str:
    """Scheme, host and port of a URL: the scope of a robots.txt."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def address(text: str) -> str:
    """Normalize a caller's URL: without its fragment, with https:// if it has no scheme."""
    url = text.strip().replace(" ", "%20")
    if _CONTROLS.search(url):  # Python would drop these characters; the fetcher rejects them
        return url
    return tidy(f"https://{url}" if re.match(r"[\w-]+(\.[\w-]+)+(:\d+)?([/?#]|$)", url) else url)


def tidy(url: str) -> str:
    """A URL without its fragment and its dot segments, so that robots.txt is asked about the path
    that is fetched.
    """
    url = urldefrag(url).url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url  # the fetcher reports the error
    steps: list[str] = []
    for step in (path := parts.path.split("/")):
        plain = step.lower().replace("%2e", ".")
        if plain == "..":
            steps = steps[:-1] if len(steps) > 1 else steps
        elif plain != ".":
            steps.append(step)
    if path[-1].lower().replace("%2e", ".") in (".", ".."):
        steps.append("")
    return parts._replace(path="/".join(steps)).geturl()
