"""A person with a browser, played by the standard library: visits an address, fills the forms in, and says where it all ended.

    python person.py ADDRESS            # prints the address to which the browser was sent back

It runs in the peers' interpreters too, so it imports nothing of ours.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

NAME, PASSWORD = "ada", "correct horse battery staple"
MOST_PAGES = 20


class Form(HTMLParser):
    """The first form of a page: where it goes, what is in it, and which button sends it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.method = "", "get"
        self.fields: dict[str, str] = {}
        self.inside = self.seen = self.pressed = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take a form's parts in."""
        told = {name: value or "" for name, value in attrs}
        if tag == "form" and not self.seen:
            self.inside = self.seen = True
            self.action, self.method = told.get("action", ""), told.get("method", "get").lower()
        elif self.inside and tag == "input" and told.get("name"):
            kind = told.get("type", "text")
            if kind == "password":
                self.fields[told["name"]] = PASSWORD
            elif kind in ("text", "email"):
                self.fields[told["name"]] = told.get("value") or NAME
            elif kind == "hidden" or (kind == "checkbox" and "checked" in told):
                self.fields[told["name"]] = told.get("value", "on")
        elif self.inside and tag == "button" and not self.pressed and told.get("type", "submit") == "submit":
            self.pressed = True  # the first button is the one that agrees
            if told.get("name"):
                self.fields[told["name"]] = told.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        """The form is whole."""
        if tag == "form":
            self.inside = False


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing by itself."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the redirect to us."""


def walk(address: str) -> str:
    """Visit, log in, agree; return the address outside that server to which the browser is sent at the end."""
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar()), Stay())
    home = urlsplit(address).netloc
    request = urllib.request.Request(address)
    for _ in range(MOST_PAGES):
        try:
            answer: Any = browser.open(request, timeout=20)
        except urllib.error.HTTPError as bad:
            answer = bad
        with answer:
            place, page = answer.geturl(), answer.read().decode("utf-8", "replace")
            onward = answer.headers.get("location")
        if onward is not None:
            target = urljoin(place, onward)
            if urlsplit(target).netloc != home:
                return target
            request = urllib.request.Request(target)
            continue
        form = Form(page)
        if not form.seen:
            raise SystemExit(f"{place} ({answer.status}) has no form: {page[:2000]}")
        target, sent = urljoin(place, form.action or place), urlencode(form.fields)
        if form.method == "post":
            origin = f"{urlsplit(place).scheme}://{urlsplit(place).netloc}"
            request = urllib.request.Request(target, sent.encode(), {"Origin": origin})
        else:
            request = urllib.request.Request(f"{target}?{sent}")
    raise SystemExit(f"{address} leads to more than {MOST_PAGES} pages")


if __name__ == "__main__":
    print(walk(sys.argv[1]))
