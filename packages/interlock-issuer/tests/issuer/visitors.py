"""A browser as a table has it: it keeps cookies as browsers do, reads pages, fills in their forms
and follows where they lead.
"""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from interlock_issuer.app import Issuer
from tests.issuer.exchange import Reply, Sent, ask
from tests.issuer.office import FORM


class Form:
    """One form of a page: where it goes, and what it sends unless told otherwise."""

    def __init__(self, method: str, action: str) -> None:
        self.method = method
        self.action = action
        self.fields: dict[str, str] = {}
        self.buttons: list[tuple[str, str]] = []
        self.boxes: set[str] = set()


class Page(HTMLParser):
    """A page: its text, tags, forms, and where it leads by itself."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.forms: list[Form] = []
        self.words: list[str] = []
        self.refresh: str | None = None
        self._style = False
        self.html = reply.body.decode()
        self.feed(self.html)
        self.close()

    @property
    def text(self) -> str:
        """What a person reads, in one line."""
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag, and what it is for."""
        given = dict(attrs)
        self.tags.append((tag, given))
        self._style = tag == "style"
        if tag == "form":
            self.forms.append(
                Form((given.get("method") or "get").upper(), given.get("action") or "")
            )
        elif tag == "input" and given.get("type") == "checkbox":
            self.forms[-1].boxes.add(given.get("name") or "")
        elif tag == "input":
            self.forms[-1].fields[given.get("name") or ""] = given.get("value") or ""
        elif tag == "button":
            self.forms[-1].buttons.append((given.get("name") or "", given.get("value") or ""))
        elif tag == "meta" and given.get("http-equiv") == "refresh":
            self.refresh = (given.get("content") or "").partition("url=")[2]

    def handle_endtag(self, tag: str) -> None:
        """The end of the style sheet."""
        self._style = False

    def handle_data(self, data: str) -> None:
        """Text."""
        if not self._style:
            self.words.append(data)

    def form(self, action: str) -> Form:
        """The form that goes to a path."""
        return next(form for form in self.forms if urlsplit(form.action).path.endswith(action))


class Visitor:
    """A person with a browser, at an address."""

    def __init__(self, issuer: Issuer, address: str = "192.0.2.7") -> None:
        self.issuer = issuer
        self.address = address
        self.base = issuer.settings.url
        self.cookies: dict[str, str] = {}
        self.set: list[str] = []  # every Set-Cookie header that came

    async def ask(
        self, method: str, url: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        """One request; cookies go along and come back, if a browser would take them."""
        parts = urlsplit(urljoin(self.base + "/", url))
        sent = dict(headers or {})
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        secure = self.base.startswith("https")
        reply = await ask(
            self.issuer, Sent(method, parts.path, parts.query, sent, body, self.address, secure)
        )
        for name, value in reply.headers:
            if name.lower() == "set-cookie":
                self._take(value)
        return reply

    async def get(self, url: str) -> Reply:
        """Visit an address of the issuer."""
        return await self.ask("GET", url)

    async def send(self, path: str, form: Mapping[str, str], *, origin: str | None = "") -> Reply:
        """Send a form; `origin` is who made the browser do it, the issuer's own page by default."""
        headers = dict(FORM)
        if origin is not None:
            headers["origin"] = origin or "{0.scheme}://{0.netloc}".format(urlsplit(self.base))
        return await self.ask("POST", path, urlencode(form).encode(), headers)

    async def fill(self, reply: Reply, action: str, **fields: str) -> Reply:
        """Fill in the form of a page that goes to `action`, and send it."""
        form = Page(reply).form(action)
        return await self.send(form.action, form.fields | fields)

    async def follow(self, reply: Reply) -> Reply:
        """Go on to where the issuer leads, as long as that is the issuer itself."""
        for _ in range(10):
            place = reply.header("location")
            if place is None or not place.startswith(f"{self.base}/"):
                return reply
            reply = await self.get(place)
        raise AssertionError("it leads in a circle")

    async def begin(self, request: Mapping[str, str]) -> Reply:
        """Come with an authorization request, and go on to the first page."""
        return await self.follow(await self.get(f"{self.base}/authorize?{urlencode(request)}"))

    def _take(self, header: str) -> None:
        self.set.append(header)
        pair, *attributes = [part.strip() for part in header.split(";")]
        name, _, value = pair.partition("=")
        known = {
            attribute.partition("=")[0].lower(): attribute.partition("=")[2]
            for attribute in attributes
        }
        if name.startswith("__Host-") and not (
            "secure" in known and known.get("path") == "/" and "domain" not in known
        ):
            return  # no browser takes it
        if "secure" in known and not self.base.startswith("https"):
            return
        if known.get("max-age") == "0":
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value


def leads_to(reply: Reply) -> str:
    """Where a reply sends the browser: by redirect, or as a page that goes on by itself."""
    place = reply.header("location")
    if place is None:
        place = Page(reply).refresh
    assert place, reply.body.decode()
    return place


def answer_at(place: str) -> dict[str, str]:
    """The parameters that somebody is sent somewhere with."""
    return dict(parse_qsl(urlsplit(place).query))
