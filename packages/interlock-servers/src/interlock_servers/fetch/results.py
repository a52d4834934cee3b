"""Results of the fetch server's tools. The page itself is the text of the result."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

Kind = Literal["markdown", "text", "html", "pdf", "image", "audio"]
Robots = Literal["allowed", "not asked", "ignored"]


class Redirect(Struct):
    """A redirect that was followed: from where, with which status, and to where; `elsewhere` says
    that it left the site.
    """

    url: str
    status: int
    to: str
    elsewhere: bool


class ResponseSource(Struct, omit_defaults=True):
    """Where an answer came from.

    `url` is the last one, after all redirects; `size` is in bytes, `age` in seconds.

    `cached` says that the server was not asked for the body again, `stale` that it failed and this
    is what it said earlier. `robots` says whether robots.txt allows it, or was not asked as a
    person wanted it.
    """

    url: str
    status: int
    content_type: str | None
    size: int
    robots: Robots
    redirects: list[Redirect] = field(default_factory=list)
    cached: bool = False
    stale: bool = False
    age: int | None = None


class PageInfo(Struct, omit_defaults=True):
    """What is known of what was fetched.

    Of `length` characters those from `start` to `end` are the text of the result.

    `next` is the cursor with which to read on, absent at the end. Pages of a PDF are counted from
    1; `first_page` and `last_page` say which ones the text has, of `pages` in all.
    """

    source: ResponseSource
    kind: Kind
    length: int = 0
    start: int = 0
    end: int = 0
    next: str | None = None
    title: str | None = None
    description: str | None = None
    language: str | None = None
    encoding: str | None = None
    pages: int | None = None
    first_page: int | None = None
    last_page: int | None = None


class PageLink(Struct):
    """A link of a page: its words, and where it leads."""

    text: str
    url: str


class PageLinks(Struct, omit_defaults=True):
    """The links of a page in their order, each address once; `found` counts all that fit, `next` is
    where to go on.
    """

    source: ResponseSource
    links: list[PageLink]
    found: int
    next: int | None = None


class Section(Struct):
    """A heading, and the cursor with which `fetch` reads on from there."""

    level: int
    title: str
    cursor: str


class Outline(Struct, omit_defaults=True):
    """The headings of a page; `complete` is false where it has more than are listed."""

    source: ResponseSource
    title: str | None
    length: int
    sections: list[Section]
    complete: bool = True
