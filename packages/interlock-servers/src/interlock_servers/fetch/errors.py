"""Error messages of the fetch server, which say what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from interlock import BlockedAddress, InterlockError, ProtocolError, ToolError
from interlock.untrusted.invisible import one_line as shown

from .results import Redirect
from .robots import RobotsRule
from .settings import PREFIX, FetchSettings

# Rules of the fetcher that the owner of this server can relax; callers cannot.
_ADVICE = {
    "url": "Give an http or https address, such as https://example.com/page.",
    "user": "Remove them; this server never logs in.",
    "here": f"The owner of this server can allow that in development, with {PREFIX}LOOPBACK=1.",
    "plain": "Use its https address.",
    "port": "Use 443 or 80, or one from 1024 on.",
    "downgrade": "To read that page, request it by its own address.",
    "hosts": f"The allowed hosts are set in {PREFIX}HOSTS on the server.",
    "never": f"They are set in {PREFIX}NEVER on the server.",
    "blind": f"If it is your own, add it to {PREFIX}HOSTS on the server.",
    "address": (f"If it is your own network, allow it with {PREFIX}NETWORKS on the server."),
}
_STATUSES = {
    400: "It rejected the address. Check it.",
    401: "It requires a login, and this server never logs in.",
    402: "It requires payment.",
    403: "It denied access. The user can open it in a browser.",
    404: "The page does not exist. Check the address, or start at the site's home page.",
    405: "The address cannot be read with GET.",
    406: "It does not have the page in a format that this server reads.",
    410: "The page is gone for good.",
    429: "It received too many requests. Wait before you try again.",
    451: "It may not be shown for legal reasons.",
    503: "It is overloaded or being repaired. Try later.",
}


def amount(size: int) -> str:
    """A number of bytes in readable form."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size} bytes"


def trail(hops: Sequence[Redirect]) -> str:
    """The redirects to a page, as the end of a sentence; empty without redirects."""
    if not hops:
        return ""
    return (
        "Redirects: "
        + "".join(f"{shown(hop.url)} -> ({hop.status}) " for hop in hops)
        + shown(hops[-1].to)
    )


def refusal(bad: InterlockError, hops: Sequence[Redirect], settings: FetchSettings) -> ToolError:
    """The error for a failed request."""
    if isinstance(bad, ProtocolError):
        words = f"It was not fetched: {bad}."
        if "more than" in words:
            words = f"It has more than {amount(settings.bytes)}, the limit ({PREFIX}BYTES)."
    elif isinstance(bad, BlockedAddress):  # its own advice is for authors
        words = f"{bad.words} {_ADVICE.get(bad.rule, '')}".rstrip()
    else:
        words = str(bad)
    return ToolError(_with(words, hops))


def too_many(hops: Sequence[Redirect], settings: FetchSettings) -> ToolError:
    """The error for too many redirects."""
    return ToolError(
        _with(
            f"There are more than {settings.redirects} redirects, the limit.",
            hops,
        )
    )


def no_page(
    url: str, status: int, headers: Mapping[str, str], hops: Sequence[Redirect]
) -> ToolError:
    """The error for a response that is not a page."""
    advice = _STATUSES.get(status)
    if advice is None:
        advice = (
            "The server has an error. Try again later."
            if status >= 500
            else "There is no readable page at this address."
        )
    after = headers.get("retry-after", "")
    wait = ""
    if after and status in (403, 429, 503):
        wait = f" It asks to wait {shown(after, 60)}{' seconds' if after.isdigit() else ''}."
    return ToolError(
        _with(f"{urlsplit(url).hostname} answered with status {status}. {advice}{wait}", hops)
    )


def not_for_robots(url: str, site: str, line: RobotsRule, token: str) -> ToolError:
    """The error for a page that robots.txt does not allow."""
    return ToolError(
        f"{shown(url)} was not fetched: {site}/robots.txt does not allow automated access "
        f"(line {line.number}, {shown(str(line), 120)!r}, for {token}). A user can read "
        "it with this server's prompt `fetch`, which does not check robots.txt."
    )


def robots_silent(url: str, site: str, why: str) -> ToolError:
    """The error if robots.txt cannot be read."""
    return ToolError(
        f"{shown(url)} was not fetched: {site}/robots.txt could not be read ({why}). "
        "Until it can be read, automated access is not allowed. Try again later, or let "
        "the user use this server's prompt `fetch`."
    )


def no_reader(url: str, content_type: str, size: int | None) -> ToolError:
    """The error for a response that is not text, an image or audio."""
    much = f" of {amount(size)}" if size is not None else ""
    return ToolError(
        f"{shown(url)} is a file{much} of the type "
        f"{shown(content_type or 'that nobody says', 100)}, which this server does not "
        "read: it reads pages, texts, PDFs, pictures and sound. The user can download it."
    )


def _with(words: str, hops: Sequence[Redirect]) -> str:
    return f"{words} {trail(hops)}".rstrip()
