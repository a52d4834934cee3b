"""Spoofed URLs: signs of phishing (homographs, userinfo, bare IP addresses, look-alike hosts).

Nothing is fetched or resolved here. A sign is not a proof, and no sign is not an all-clear
(`ELI-25`, `ELI-26`).
"""

from __future__ import annotations

import contextlib
import re
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from .invisible import hidden
from .lookalikes import scripts, skeleton

_NUMBER = re.compile(r"(?:0[xX][0-9a-fA-F]*|\d+)(?:\.(?:0[xX][0-9a-fA-F]*|\d+)){0,3}\.?")
_SECOND_LEVEL = frozenset(
    {"co", "com", "ac", "gov", "org", "net", "edu", "gob", "or", "ne", "go"}
)  # as in co.uk
# Services under which anybody gets a name: what comes before it says who it is.
_SHARED = frozenset(
    {
        "amazonaws.com", "appspot.com", "azurewebsites.net", "blogspot.com", "cloudfront.net",
        "duckdns.org", "firebaseapp.com", "fly.dev", "github.io", "gitlab.io", "glitch.me",
        "herokuapp.com", "myshopify.com", "netlify.app", "ngrok-free.app", "ngrok.io",
        "onrender.com", "pages.dev", "repl.co", "replit.app", "s3.amazonaws.com", "surge.sh",
        "trycloudflare.com", "vercel.app", "web.app", "weebly.com", "wixsite.com", "wordpress.com",
        "workers.dev",
    }
)  # fmt: skip
# Domains of countries that are sold to anybody, and stand for something else.
_FOR_ANYBODY = frozenset({"ai", "cc", "co", "gg", "io", "ly", "me", "sh", "so", "to", "tv"})
# Ends of hosts that readers know; in the middle of a host one makes its beginning look like a host
# of its own.
_TOP = frozenset({"app", "co", "com", "dev", "edu", "gov", "io", "net", "org"})
# Names that phishing borrows, with the sites that are theirs; those of countries (amazon.de) are
# theirs, too.
WELL_KNOWN: dict[str, frozenset[str]] = {
    name: frozenset({f"{name}.com", *sites})
    for name, sites in {
        "adobe": (), "airbnb": (), "amazon": ("amazonaws.com",), "anthropic": (), "apple": (),
        "atlassian": ("atlassian.net",), "auth0": (), "binance": (),
        "bitbucket": ("bitbucket.org",), "citibank": (), "claude": ("claude.ai",), "cloudflare": (),
        "coinbase": (), "docusign": ("docusign.net",), "dropbox": (), "ebay": (), "facebook": (),
        "figma": (), "github": ("github.io", "github.dev"), "gitlab": ("gitlab.io",), "gmail": (),
        "google": ("google.dev", "googleapis.com"), "huggingface": ("huggingface.co",),
        "icloud": (), "instagram": (), "linkedin": (), "microsoft": ("microsoft365.com",),
        "microsoftonline": (), "netflix": (), "notion": ("notion.so",), "npmjs": (), "okta": (),
        "openai": (), "outlook": (), "paypal": ("paypal.me",), "revolut": (), "salesforce": (),
        "shopify": (), "slack": (), "spotify": (), "stripe": (), "telegram": ("telegram.org",),
        "twitter": (), "wellsfargo": (), "whatsapp": (), "yahoo": (), "youtube": (),
        "zoom": ("zoom.us",),
    }.items()
}  # fmt: skip
_LOCAL = ("localhost", "127.0.0.1", "::1")


class Danger(NamedTuple):
    """A sign that a URL is not what it seems:

    `kind` is a short stable word, `words` a sentence for the person.
    """

    kind: str
    words: str


class Examined(NamedTuple):
    """What a URL leads to, as a person should read it.

    Attributes:
        host: The host in its own letters; empty where there is none to be made out.
        site: The end of the host that somebody has registered (see `site_of`), which says who is
            behind the page; the host itself where it is a number.
        dangers: What is odd about the URL, the gravest first.
    """

    host: str
    site: str
    dangers: tuple[Danger, ...]


def dangers(url: str) -> tuple[str, ...]:
    """What is odd about a URL that somebody is asked to open, one sentence each; empty where
    nothing is.

    Args:
        url: The URL as the server wrote it.
    """
    return tuple(found.words for found in examine(url).dangers)


def examine(url: str, *, own: str = "") -> Examined:
    """Read a URL as a careful person would.

    Args:
        url: The URL as the server wrote it.
        own: The URL, or host, of the server that names it; its look-alikes are pointed out.
    """
    found: list[Danger] = []

    def warn(kind: str, words: str) -> None:
        found.append(Danger(kind, words))

    if hidden(url) or re.search(r"[\s\\]", url):
        warn("hidden", "The address contains invisible or invalid characters.")
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
        port = parts.port
    except ValueError:
        warn("address", "This address cannot be parsed. Do not open it.")
        return Examined("", "", tuple(found))
    if parts.scheme not in ("http", "https"):
        warn(
            "scheme",
            f"This is not a web address: it begins with {parts.scheme or 'nothing'}. "
            "It may start a program.",
        )
    if not host:
        warn("address", "This address has no readable host. Do not open it.")
        return Examined("", "", tuple(found))
    local = host in _LOCAL or host.endswith(".localhost")
    if parts.scheme == "http" and not local:
        warn(
            "http",
            "Everything you type there can be read on the way: the address is not "
            "encrypted (http).",
        )
    if "@" in parts.netloc:
        warn("userinfo", f"The text before the @ is not the host. It leads to {host}.")
    if port is not None and port not in (80, 443) and not local:
        warn("port", f"The port {port} is unusual for a web page.")
    shown = _spelled(host)
    ours = _own(own)
    is_number = _is_number(host)
    if not local and not is_number and not (ours and _site(shown) == _site(ours)):
        found[:0] = _borrowed(shown)
    if not local:
        found += (Danger(*each) for each in _of_host(host, shown))
    if ours and (lookalike := _lookalike(shown, ours)):
        warn("lookalike", lookalike)
    return Examined(shown, shown if is_number else _site(shown), tuple(found))


def site_of(host: str) -> str:
    """The end of a host that somebody has registered: example.com of login.example.com.

    It knows the second level of countries (co.uk) and the best-known services under which anybody
    gets a name (github.io), not the whole Public Suffix List: of an unknown suffix of two names,
    the site is too short by one name.
    """
    return host if _is_number(host) else _site(host)


def _is_number(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return _NUMBER.fullmatch(host) is not None
    return True


def _borrowed(host: str) -> list[Danger]:
    """The names of others that a host has in it: a well-known one, or a whole host at its
    beginning.
    """
    site = _site(host)
    chosen = host.removesuffix(site.partition(".")[2])  # without github.io, which nobody chose
    parts = [part for part in re.split(r"[-_.]+", chosen) if part]
    for name, sites in WELL_KNOWN.items():
        if site in sites or _is_country_site(site, name):
            continue
        if name in parts:
            words = (
                f"The host has the name {name} in it, and does not belong to it: it belongs to "
                f"{site}."
            )
            return [Danger("brand", words)]
        # A single look-alike letter is enough: paypa1, micros0ft.
        if alike := next((part for part in parts if skeleton(part) == skeleton(name)), ""):
            words = f"{alike} reads like {name}, and is another: the host belongs to {site}."
            return [Danger("brand", words)]
    before = host.removesuffix(site).rstrip(".").split(".")
    for place, label in enumerate(before):
        if place and label in _TOP:
            first = ".".join(before[max(0, place - 1) : place + 1])
            words = f"The host begins like {first}, and is another: it belongs to {site}."
            return [Danger("nested", words)]
    return []


def _is_country_site(site: str, name: str) -> bool:
    """Whether this is a well-known name under the domain of a country, as amazon.co.uk."""
    first, *rest = site.split(".")
    if first != name or len(rest[-1]) != 2 or rest[-1] in _FOR_ANYBODY:
        return False
    return len(rest) == 1 or (len(rest) == 2 and rest[0] in _SECOND_LEVEL)


def _of_host(host: str, shown: str) -> list[tuple[str, str]]:
    try:
        ip_address(host)
    except ValueError:
        if _NUMBER.fullmatch(host):
            return [("number", "The host is a disguised number, not a name.")]
    else:
        return [
            ("number", "The host is an IP address, not a name: you cannot see who is behind it.")
        ]
    found: list[tuple[str, str]] = []
    foreign = host.startswith("xn--") or ".xn--" in host or not host.isascii()
    if foreign:
        found.append(
            (
                "foreign",
                f"The host is written in letters that may look like others: {shown} is "
                f"{_ascii(host)}.",
            )
        )
    if any(len(scripts(label)) > 1 for label in shown.split(".")):
        found.append(("mixed", f"The host mixes writing systems in one name: {shown}."))
    elif any(
        not label.isascii() and scripts(label) != {"LATIN"} and skeleton(label).isascii()
        for label in shown.split(".")
    ):
        found.append(
            (
                "confusable",
                f"The host reads like {'.'.join(map(skeleton, shown.split('.')))}, and is another.",
            )
        )
    return found


def _spelled(host: str) -> str:
    """The host in its own letters, where it is written in Punycode."""
    labels = []
    for label in host.split("."):
        if label.startswith("xn--"):
            with contextlib.suppress(UnicodeError, ValueError, OverflowError):
                label = label[4:].encode("ascii").decode("punycode")
        labels.append("".join(f"%{ord(each):04X}" if hidden(each) else each for each in label))
    return ".".join(labels)


def _ascii(host: str) -> str:
    """The host as the network knows it."""
    try:
        return ".".join(
            label if label.isascii() else "xn--" + label.encode("punycode").decode("ascii")
            for label in host.split(".")
        )
    except UnicodeError:
        return host


def _own(server: str) -> str:
    try:
        host = urlsplit(server if "://" in server else f"//{server}").hostname or ""
    except ValueError:
        return ""
    return (
        ""
        if host in _LOCAL or "." not in host or _NUMBER.fullmatch(host) or ":" in host
        else _spelled(host.rstrip("."))
    )


def _lookalike(host: str, own: str) -> str:
    """How a host pretends to be that of the server, in a sentence; empty where it does not."""
    ours = _site(own)
    theirs = _site(host)
    if ours == theirs:
        return ""
    if skeleton(ours) == skeleton(theirs):
        return f"The host {host} looks like {ours}, the server's own, and is another."
    if own in host or f"{ours}." in f"{host}.":
        return (
            f"The host {host} has the server's own name {ours} in it, and is another: what "
            f"counts is its end, {theirs}."
        )
    name = ours.split(".")[0]
    other = theirs.split(".")[0]
    if len(name) > 4 and _one_apart(skeleton(name), skeleton(other)):
        return f"The host {host} differs from {ours}, the server's own, by a single letter."
    if len(name) > 4 and name in re.split(r"[-_]", other) and name != other:
        return (
            f"The host {host} has the server's own name {name} in it, and is another than {ours}."
        )
    return ""


def _site(host: str) -> str:
    """See `site_of`; of a host that is a name."""
    labels = host.split(".")
    for size in (3, 2):
        if len(labels) > size and ".".join(labels[-size:]) in _SHARED:
            return ".".join(labels[-size - 1 :])
    deep = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SECOND_LEVEL
    return ".".join(labels[-3 if deep else -2 :])


def _one_apart(one: str, other: str) -> bool:
    """Whether one letter was put in, left out or changed, or two were swapped."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    short, long = sorted((one, other), key=len)
    first = next(
        (i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short)
    )
    if len(short) < len(long):
        return short[first:] == long[first + 1 :]
    swapped = (
        short[first : first + 2] == long[first : first + 2][::-1]
        and short[first + 2 :] == long[first + 2 :]
    )
    return short[first + 1 :] == long[first + 1 :] or swapped
