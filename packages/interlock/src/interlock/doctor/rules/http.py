"""Rules about an endpoint over HTTP: path, status, content type, sessions and event streams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..diagnostics import RuleFinding, rule
from ..facts import EndpointFacts

_REDIRECTS = (301, 302, 303, 307, 308)
_REFUSES_TOKENS = (401, 403)
_HOST = re.compile(r"\b(?:host|origin)\b", re.IGNORECASE)
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_QUOTED = 200  # characters of a body


@rule(
    "http-fails",
    "error",
    "There is no HTTP response",
    advice="Check that an HTTP server listens there, and that it is not overloaded.",
    stops=True,
)
def http_fails(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """The connection was closed, or nothing came in time."""
    if facts.first.error:
        yield RuleFinding(facts.first.error, facts.url)


@rule(
    "redirect",
    "error",
    "The URL redirects to another host",
    advice="Use the other URL, if you trust it: neither requests nor tokens are sent on.",
    stops=True,
)
def redirect(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """The server is at another URL, or the redirect names none."""
    if facts.first.status in _REDIRECTS:
        where = facts.first.location or "no URL"
        yield RuleFinding(f"status {facts.first.status}, a redirect to {where}", facts.url)


@rule(
    "redirect-same-host",
    "warning",
    "The URL redirects within its host",
    advice="Use the other URL: many clients do not send a POST request on.",
)
def redirect_same_host(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """For example from /mcp to /mcp/."""
    if facts.moved:
        yield RuleFinding(f"a redirect to {facts.moved}", facts.url)


@rule(
    "path-not-found",
    "error",
    "There is no MCP endpoint at this path",
    advice="Correct the path of the URL.",
    stops=True,
)
def path_not_found(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """Status 404. The usual paths of the same host are tried."""
    if facts.first.status in (404, 410) and not facts.has_sse:
        there = " or ".join(facts.elsewhere)
        yield RuleFinding(
            f"status {facts.first.status}",
            facts.url,
            f"The server answers at {there}: use that URL." if there else "",
        )


@rule(
    "post-refused",
    "error",
    "The URL does not accept POST requests",
    advice="Use the URL of the MCP endpoint, not that of its page or its documentation.",
    stops=True,
)
def post_refused(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """Status 405, and not HTTP+SSE either."""
    if facts.first.status == 405 and not facts.has_sse:
        there = " or ".join(facts.elsewhere)
        yield RuleFinding(
            "status 405",
            facts.url,
            f"The server answers at {there}: use that URL." if there else "",
        )


@rule(
    "legacy-sse",
    "warning",
    "The server speaks only HTTP+SSE, the transport of 2024-11-05",
    advice="Update the server: new clients no longer support this transport.",
)
def legacy_sse(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """POST is refused, and GET returns an event stream that names another endpoint."""
    if facts.has_sse:
        yield RuleFinding("it has no Streamable HTTP at this URL", facts.url)


@rule(
    "host-refused",
    "error",
    "The server refuses the name of the host",
    advice="Allow this name on the server (`hosts=`, --allow-host, or ALLOWED_HOSTS).",
    stops=True,
)
def host_refused(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """Status 403 or 421, because of the Host or Origin header."""
    first = facts.first
    if first.status == 421 or (first.status in (400, 403) and _HOST.search(first.text)):
        yield RuleFinding(f"status {first.status}: {_quoted(first.text)}", facts.url)


@rule(
    "rate-limited",
    "error",
    "The server refuses requests because there are too many",
    advice="Wait, and raise the rate limit if it is your server.",
    stops=True,
)
def rate_limited(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """Status 429."""
    if facts.first.status == 429:
        yield RuleFinding("status 429", facts.url)


@rule(
    "server-error",
    "error",
    "The server answers with an internal error",
    advice="Read the log of the server. With 502 to 504, its proxy does not reach it.",
    stops=True,
)
def server_error(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """A status from 500 on."""
    if facts.first.status >= 500:
        yield RuleFinding(f"status {facts.first.status}: {_quoted(facts.first.text)}", facts.url)


@rule(
    "content-type",
    "error",
    "The response is not one of an MCP endpoint",
    advice="Use the URL of the MCP endpoint. A page here may be a login or the start page.",
    stops=True,
)
def content_type(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """A successful response that is neither JSON nor an event stream."""
    first = facts.first
    if 200 <= first.status < 300 and not first.is_ok:
        there = " or ".join(facts.elsewhere)
        yield RuleFinding(
            f"status {first.status} with {first.kind or 'no content type'}",
            facts.url,
            f"The server answers at {there}: use that URL." if there else "",
        )


@rule(
    "request-refused",
    "error",
    "The server refuses the first request",
    advice="Read the log of the server.",
    stops=True,
)
def request_refused(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """Any other status from 400 on."""
    first = facts.first
    special = (*_REFUSES_TOKENS, 404, 405, 410, 421, 429)
    by_host = first.status == 400 and _HOST.search(first.text)
    is_other = 400 <= first.status < 500 and first.status not in special
    if is_other and not by_host and not facts.has_sse:
        yield RuleFinding(f"status {first.status}: {_quoted(first.text)}", facts.url)


@rule(
    "origin-unchecked",
    "warning",
    "Any web page can use the server",
    advice="Check the Host or the Origin header: a page in your browser can call every tool.",
)
def origin_unchecked(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """A server on this machine accepts a request with the Host and Origin of another site."""
    if facts.foreign is not None and 200 <= facts.foreign < 300:
        yield RuleFinding(
            "a request with the Host and Origin of another site was accepted", facts.url
        )


@rule(
    "session-id",
    "error",
    "The session id has characters that no header may have",
    advice="Make session ids of visible ASCII characters.",
)
def session_id(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """2025-03-26 to 2025-11-25, "Session Management"."""
    if facts.session and not _VISIBLE.fullmatch(facts.session):
        yield RuleFinding("the Mcp-Session-Id is not of visible ASCII characters")


@rule(
    "unknown-session",
    "warning",
    "An unknown session is not answered with 404",
    advice="Answer 404: then clients start a new session after a restart of the server.",
)
def unknown_session(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """A request with a session id that the server never issued."""
    if facts.unknown_session is not None and facts.unknown_session != 404:
        yield RuleFinding(f"the status is {facts.unknown_session}", facts.url)


@rule(
    "session-end",
    "error",
    "The server breaks when a session ends",
    advice="Update its SDK. Restart the server: it may answer nobody any more.",
    stops=True,
)
def session_end(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """After a DELETE request, which every client sends when it closes, others get no answer."""
    after = facts.after_session
    if after is not None and (after.error or after.status >= 500):
        words = after.error or f"status {after.status}"
        yield RuleFinding(f"after the end of a session, the next client gets: {words}", facts.url)


@rule(
    "get-stream",
    "warning",
    "A GET request is answered with neither an event stream nor 405",
    advice="Answer GET with text/event-stream, or with 405.",
)
def get_stream(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """The GET stream of a session (2025-03-26 to 2025-11-25)."""
    get = facts.get
    if get is None or get.status == 405 or (get.status == 200 and get.kind == "text/event-stream"):
        return
    words = get.error or f"status {get.status} with {get.kind or 'no content type'}"
    yield RuleFinding(words, facts.url)


@rule(
    "stream-cut",
    "warning",
    "The event stream is cut",
    advice="Raise the idle timeout of the proxy in between, or send keep-alive comments.",
)
def stream_cut(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """The stream ended while it was watched."""
    if facts.watched is not None and facts.stream_ended:
        yield RuleFinding(f"it ended after {facts.watched:.1f} s", facts.url)


@rule(
    "keep-alive",
    "warning",
    "The event stream has no keep-alive",
    advice="Send a comment every 15 to 30 seconds: proxies cut a stream that is silent for 60.",
)
def keep_alive(facts: EndpointFacts) -> Iterator[RuleFinding]:
    """Nothing arrived for as long as proxies wait."""
    if facts.watched is not None and not facts.stream_ended and facts.quiet >= facts.idle_seconds:
        yield RuleFinding(f"nothing arrived for {facts.quiet:.0f} s", facts.url)


def _quoted(text: str) -> str:
    return " ".join(text.split())[:_QUOTED] or "an empty body"


RULES: Final = (
    http_fails,
    redirect,
    redirect_same_host,
    path_not_found,
    post_refused,
    legacy_sse,
    host_refused,
    rate_limited,
    server_error,
    content_type,
    request_refused,
    origin_unchecked,
    session_id,
    unknown_session,
    session_end,
    get_stream,
    stream_cut,
    keep_alive,
)
