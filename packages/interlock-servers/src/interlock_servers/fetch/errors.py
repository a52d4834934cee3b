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
    "user": "Leave them out; this server never logs in.",
    "here": f"The owner of this server can allow that in development, by {PREFIX}LOOPBACK=1.",
    "plain": "Use its https address.",
    "port": "Use 443 or 80, or one from 1024 on.",
    "downgrade": "If that page is meant, ask for it by its own address.",
    "hosts": f"Those that may are named in {PREFIX}HOSTS, where this server runs.",
    "never": f"They are named in {PREFIX}NEVER, where this server runs.",
    "blind": f"If it is your own, name it in {PREFIX}HOSTS, where this server runs.",
    "address": (
        f"If it is your own network, allow that by {PREFIX}NETWORKS, where this server runs."
    ),
}
_STATUSES = {
    400: "It does not understand the address. Look it up again.",
    401: "It requires a login, and this server never logs in.",
    402: "It wants to be paid.",
    403: "It does not let this server in. The person may open it in a browser.",
    404: "The page does not exist. Look the address up, or begin at the site's front page.",
    405: "The address is not there to be read.",
    406: "It has the page in no form that this server reads.",
    410: "The page is gone for good.",
    429: "It was asked too often. Wait before you try again.",
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
        words = f"It was not read: {bad}."
        if "more than" in words:
            words = (
                f"It has more than {amount(settings.bytes)}, the most that is read ({PREFIX}BYTES)."
            )
    elif isinstance(bad, BlockedAddress):  # its own advice is for authors
        words = f"{bad.words} {_ADVICE.get(bad.rule, '')}".rstrip()
    else:
        words = str(bad)
    return ToolError(_with(words, hops))


def too_many(hops: Sequence[Redirect], settings: FetchSettings) -> ToolError:
    """The error for too many redirects."""
    return ToolError(
        _with(
            f"There are more than {settings.redirects} redirects, and they were not followed "
            "further.",
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
            "The fault is the server's. Try later."
            if status >= 500
            else "No page can be read there."
        )
    after = headers.get("retry-after", "")
    wait = ""
    if after and status in (403, 429, 503):
        wait = f" It says to wait {shown(after, 60)}{' seconds' if after.isdigit() else ''}."
    return ToolError(
        _with(f"{urlsplit(url).hostname} answered with status {status}. {advice}{wait}", hops)
    )


def not_for_robots(url: str, site: str, line: RobotsRule, token: str) -> ToolError:
    """The error for a page that robots.txt does not allow."""
    return ToolError(
        f"{shown(url)} was not fetched: {site}/robots.txt does not allow it to programs that "
        f"nobody watches (line {line.number}, "
        f"{shown(str(line), 120)!r}, for {token}). A person who wants to read it can use this "
        "server's prompt `fetch`, for which "
        "robots.txt is not asked."
    )


def robots_silent(url: str, site: str, why: str) -> ToolError:
    """The error if robots.txt cannot be read."""
    return ToolError(
        f"{shown(url)} was not fetched: {site}/robots.txt could not be read ({why}), and until it "
        "can be nothing there is fetched "
        "by a program that nobody watches. Try later, or let the person use this server's prompt "
        "`fetch`."
    )


def no_reader(url: str, content_type: str, size: int | None) -> ToolError:
    """The error for a response that is not text, an image or audio."""
    much = f" of {amount(size)}" if size is not None else ""
    return ToolError(
        f"{shown(url)} is a file{much} of the type "
        f"{shown(content_type or 'that nobody says', 100)}, which this server does not read: "
        "it reads pages, texts, PDFs, pictures and sound. The person may download it."
    )


def _with(words: str, hops: Sequence[Redirect]) -> str:
    return f"{words} {trail(hops)}".rstrip()
