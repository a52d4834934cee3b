"""A user with a browser, played by the standard library: visits a URL, fills in the forms, and
reports the final URL.

    python person.py ADDRESS            # prints the address to which the browser was sent back

It runs in the peers' interpreters too, so it does not import our code.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

NAME = "ada"
PASSWORD = "correct horse battery staple"
MOST_PAGES = 20


class Form:
    """The form of a page that gives consent: its target, its fields, and its button.

    It is the form with a button of the class "yes" if there is one; otherwise the first form, with
    its first button.
    """

    def __init__(self, page: str) -> None:
        forms = Forms(page)
        found = forms.found
        self.onward = forms.onward
        chosen = next((form for form in found if form["button"][1]), found[0] if found else None)
        self.seen = chosen is not None
        self.action, self.method = (chosen["action"], chosen["method"]) if chosen else ("", "get")
        self.fields: dict[str, str] = chosen["fields"] | chosen["button"][0] if chosen else {}


class Forms(HTMLParser):
    """Every form of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []
        self.inside = False
        self.onward: str | None = None  # the target of an automatic redirect
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect a form's parts."""
        told = {name: value or "" for name, value in attrs}
        if tag == "meta" and told.get("http-equiv", "").lower() == "refresh":
            self.onward = told.get("content", "").partition("url=")[2] or None
        elif tag == "form":
            self.inside = True
            method = told.get("method", "get").lower()
            self.found.append(
                {
                    "action": told.get("action", ""),
                    "method": method,
                    "fields": {},
                    "button": ({}, False, False),
                }
            )
        elif self.inside and tag == "input" and told.get("name"):
            self.fill(told, self.found[-1]["fields"])
        elif self.inside and tag == "button" and told.get("type", "submit") == "submit":
            _, agrees, pressed = self.found[-1]["button"]
            says_yes = "yes" in told.get("class", "").split()
            if not pressed or (says_yes and not agrees):
                self.found[-1]["button"] = (
                    {told["name"]: told.get("value", "")} if told.get("name") else {},
                    says_yes,
                    True,
                )

    def fill(self, told: dict[str, str], fields: dict[str, str]) -> None:
        """Fill one field in."""
        kind = told.get("type", "text")
        if kind == "password":
            fields[told["name"]] = PASSWORD
        elif kind in ("text", "email"):
            fields[told["name"]] = told.get("value") or NAME
        elif kind == "hidden" or (kind == "checkbox" and "checked" in told):
            fields[told["name"]] = told.get("value", "on")

    def handle_endtag(self, tag: str) -> None:
        """A form is whole."""
        if tag == "form":
            self.inside = False


class Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirects automatically."""

    def redirect_request(self, *_: Any) -> None:
        """Leave the redirect to us."""


def walk(address: str) -> str:
    """Visit the page, log in and consent; return the final redirect to a URL outside that
    server."""
    browser = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar()), Stay()
    )
    home = urlsplit(address).netloc
    request = urllib.request.Request(address)
    for _ in range(MOST_PAGES):
        try:
            answer: Any = browser.open(request, timeout=20)
        except urllib.error.HTTPError as bad:
            answer = bad
        with answer:
            place = answer.geturl()
            page = answer.read().decode("utf-8", "replace")
            onward = answer.headers.get("location")
        form = Form(page)
        onward = onward or form.onward
        if onward is not None:
            target = urljoin(place, onward)
            if urlsplit(target).netloc != home:
                return target
            request = urllib.request.Request(target)
            continue
        if not form.seen:
            raise SystemExit(f"{place} ({answer.status}) has no form: {page[:2000]}")
        target = urljoin(place, form.action or place)
        sent = urlencode(form.fields)
        if form.method == "post":
            origin = f"{urlsplit(place).scheme}://{urlsplit(place).netloc}"
            request = urllib.request.Request(target, sent.encode(), {"Origin": origin})
        else:
            request = urllib.request.Request(f"{target}?{sent}")
    raise SystemExit(f"{address} leads to more than {MOST_PAGES} pages")


if __name__ == "__main__":
    print(walk(sys.argv[1]))
