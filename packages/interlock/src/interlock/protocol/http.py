"""Rules for HTTP requests to an MCP endpoint, for all revisions: pure checks of method, headers and
body, with Host and Origin checked against DNS rebinding.

The order of refusals: Host and Origin, the HTTP method, the media types, the body, then the era and
the checks of that era (2026-07-28 and 2025-11-25, "Streamable HTTP").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, Struct

from .. import types as t
from ..wire import jsonrpc
from ..wire.codec import decode
from ..wire.http import BadHeaderValue, decode_value, is_numeric
from ..wire.jsonrpc import READ_ERRORS, Frame, Malformed
from ..wire.revisions import HANDSHAKE_REVISIONS, R2, REVISIONS, STATELESS_REVISIONS, error_code
from ..wire.salvage import without_lone_surrogates
from .identity import Identity
from .metadata import NO_META, take_meta

Headers = Mapping[bytes, bytes]

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
VERSION = b"mcp-protocol-version"
METHOD = b"mcp-method"
NAME = b"mcp-name"
SESSION = b"mcp-session-id"
LAST_EVENT = b"last-event-id"
_ROUTING = frozenset({VERSION, METHOD, NAME, SESSION})
_PARAM = b"mcp-param-"
_PLAIN = re.compile(rb"[A-Za-z0-9_./:-]+").fullmatch  # characters that a header contains unencoded
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}").fullmatch
_MOST_HOSTS = 1000
_HOST = re.compile(r"(?:\[([0-9a-f:.%]+)\]|([^\[\]:@/?#,\s]+))(?::[0-9]{0,5})?")
_LONGEST_SOURCE = 600  # bytes of a host and an origin; a name in the DNS has 253
_LONGEST = 80  # of what is repeated in a refusal
JSON = b"application/json"
EVENTS = b"text/event-stream"
_BOTH = b"application/json, text/event-stream"  # as nearly every client has it
_NO_WEIGHT = re.compile(rb"q\s*=\s*0(\.0*)?")

_STATUS = {
    t.METHOD_NOT_FOUND: 404,
    t.HEADER_MISMATCH: 400,
    t.MISSING_CLIENT_CAPABILITY: 400,
    t.UNSUPPORTED_PROTOCOL_VERSION: 400,
}


class EndpointRules(Struct, kw_only=True):
    """The access rules of an endpoint.

    Attributes:
        hosts: The accepted names (with or without a port) in the Host header, besides the loopback
            names and IP addresses, which cannot be rebound. "*" accepts every name.
        origins: The accepted origins of web pages, besides pages of the same host and, on loopback,
            pages of this machine.
        sessions: Whether handshake-era requests have a session.
        greets: Whether the handshake era is served.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    sessions: bool = True
    greets: bool = True
    _known: dict[tuple[bytes | None, bytes | None], str] = {}

    def check_host_and_origin(self, host: bytes | None, origin: bytes | None) -> str:
        """Return why a request with this Host and Origin is refused; "" if it is accepted
        (`SEC-01`, `HTM-22`).
        """
        known = self._known.get((host, origin))
        if known is None:
            if len(self._known) >= _MOST_HOSTS:
                self._known.clear()
            known = self._judge_source(host, origin)
            if (
                len(host or b"") + len(origin or b"") <= _LONGEST_SOURCE
            ):  # without a limit, anonymous clients could fill the memory
                self._known[host, origin] = known
        return known

    def _judge_source(self, host: bytes | None, origin: bytes | None) -> str:
        asked = (host or b"").decode("latin-1").strip(" \t").lower()
        name = _name(asked)
        if not name or not (
            is_numeric(name) or name == "localhost" or {"*", asked, name} & self.hosts
        ):
            return (
                f"the host {_short(asked)} is not one of this server; if it should be, name it: "
                f"hosts=[{_short(name)}]"
            )
        if origin is None:
            return ""
        page = origin.decode("latin-1").strip(" \t").lower()
        scheme, _, where = page.partition("://")
        if {"*", page} & self.origins:
            return ""
        if (
            scheme in ("http", "https")
            and where
            and (where == asked or (_name(where) in LOOPBACK_NAMES and name in LOOPBACK_NAMES))
        ):
            return ""
        return (
            f"the origin {_short(page)} may not use this server; if it should, name it: "
            f"origins=[{_short(page)}]"
        )


class HttpRefusal(Struct, frozen=True):
    """An error response: status, body and further headers."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    why: str = ""


class Stateless(Struct, frozen=True):
    """A request of the stateless era. It is decoded if that was possible in one pass; otherwise the
    connection finds the error.
    """

    request: Any
    meta: t.RequestMeta


class OpensSession(Struct, frozen=True):
    """`initialize`: it opens a session."""


class InSession(Struct, frozen=True):
    """Messages of the handshake era, for the session in the header or without a session.

    Attributes:
        revision: The revision in the header.
        request: Set if the body is one request that was decoded in one pass.
    """

    session: str | None
    revision: str | None
    request: Any = None
    meta: t.RequestMeta = NO_META


class ListensInSession(Struct, frozen=True):
    """GET: opens the stream of a session, or resumes one of its streams."""

    session: str
    revision: str | None
    last_event: str | None


class EndsSession(Struct, frozen=True):
    """DELETE: ends a session."""

    session: str
    revision: str | None


class Accepted(Struct, frozen=True):
    """A message without an effect or an answer: 202 (`HTM-05`)."""


Verdict = (
    HttpRefusal | Stateless | OpensSession | InSession | ListensInSession | EndsSession | Accepted
)


def error(
    status: int,
    code: int,
    message: str,
    data: Any = None,
    *,
    id: t.RequestId | None = None,
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> HttpRefusal:
    """Return a refusal with a JSON-RPC error as its body."""
    return HttpRefusal(
        status,
        jsonrpc.failure(id, code, message, data),
        ((b"content-type", JSON), *headers),
        message,
    )


def status_of(code: int) -> int:
    """The HTTP status for a JSON-RPC error code in the stateless era (`HTM-24`; X-14: 200 for all
    codes that are not listed).
    """
    return _STATUS.get(code, 200)


class EndpointHead(Struct):
    """The head of a request to the endpoint, with all that follows from it without the body.

    Requests with equal heads may share it.

    Attributes:
        method: The HTTP method.
        headers: The headers, with names in lower case.
        source: Why the Host or the Origin is refused; "" if they are accepted.
        refusal: The error response to the headers of a POST; None if they are accepted.
        version: The header MCP-Protocol-Version.
        rpc_method: The header Mcp-Method.
        name: The header Mcp-Name, if it is plain ASCII and needs no decoding.
        session: The header Mcp-Session-Id.
        takes_events: Whether the client accepts an event stream.
        params: The headers that mirror arguments.
    """

    method: str
    headers: Headers
    source: str
    refusal: HttpRefusal | None
    version: str | None
    rpc_method: str | None
    name: str | None
    session: str | None
    takes_events: bool
    params: Mapping[str, str]


def read_head(
    rules: EndpointRules, method: str, pairs: Sequence[tuple[bytes, bytes]]
) -> EndpointHead:
    """Read the head of a request, whose headers have names in lower case."""
    headers = dict(pairs)
    repeated = [] if len(headers) == len(pairs) else _repeated(pairs)
    if b"accept" in repeated:  # a list in several headers is one list
        headers[b"accept"] = b", ".join(value for name, value in pairs if name == b"accept")
    return EndpointHead(
        method,
        headers,
        rules.check_host_and_origin(headers.get(b"host"), headers.get(b"origin")),
        _judge_headers(method, headers, repeated),
        text(headers, VERSION),
        text(headers, METHOD),
        name.decode() if (name := headers.get(NAME)) is not None and _PLAIN(name) else None,
        text(headers, SESSION),
        accepts(headers, EVENTS),
        HeaderParams(headers),
    )


def _repeated(pairs: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the names of headers that occur more than once."""
    seen: set[bytes] = set()
    repeated = []
    for name, _ in pairs:
        if name in seen:
            repeated.append(name)
        seen.add(name)
    return repeated


def _judge_headers(method: str, headers: Headers, repeated: Sequence[bytes]) -> HttpRefusal | None:
    """Return the error response to headers that no request, or no POST, may have."""
    if repeated and (
        doubled := [
            n
            for n in repeated
            if n in _ROUTING or n.startswith(_PARAM) or n in (b"host", b"origin")
        ]
    ):  # `HDR-11`: readers of the first value and readers of the last would see different requests
        return error(
            400,
            t.HEADER_MISMATCH,
            f"Header mismatch: the header {doubled[0].decode('latin-1')} comes more than once",
        )
    if method != "POST":
        return None
    kind = headers.get(b"content-type", b"")
    if kind != JSON and kind.split(b";", 1)[0].strip().lower() != JSON:
        return error(
            415,
            t.INVALID_REQUEST,
            "Unsupported media type: the body must be sent as application/json",
        )
    if not (accepts(headers, JSON) or accepts(headers, EVENTS)):
        return error(
            406,
            t.INVALID_REQUEST,
            "Not acceptable: the answer is application/json or text/event-stream; accept both",
        )
    return None


def judge(rules: EndpointRules, identity: Identity, head: EndpointHead, body: Frame) -> Verdict:
    """What a request to the endpoint is; never raises."""
    if head.source:
        return error(403, t.INVALID_REQUEST, f"Forbidden: {head.source}")
    if head.refusal is not None:
        return head.refusal
    if head.method != "POST":
        return _judge_other(rules, identity, head)
    return _judge_body(identity, head, body)


def accepts(headers: Headers, kind: bytes) -> bool:
    """Whether the Accept header permits a media type. A missing header permits all."""
    accept = headers.get(b"accept")
    if accept is None or accept == _BOTH:
        return True
    wanted: dict[bytes, bool] = {}
    for part in accept.lower().split(b","):
        name, *parameters = (piece.strip() for piece in part.split(b";"))
        wanted[name] = not any(_NO_WEIGHT.fullmatch(parameter) for parameter in parameters)
    for name in (kind, kind.partition(b"/")[0] + b"/*", b"*/*"):  # the most specific range wins
        if name in wanted:
            return wanted[name]
    return False


def _judge_other(rules: EndpointRules, identity: Identity, head: EndpointHead) -> Verdict:
    """Judge GET and DELETE, which only sessions have (`HTM-19`, `HTL-25`)."""
    method = head.method
    session = head.session
    revision = head.version
    served = rules.sessions and rules.greets
    if (
        method not in ("GET", "DELETE")
        or not served
        or (revision is not None and revision in STATELESS_REVISIONS)
    ):
        allowed = b"GET, POST, DELETE" if served else b"POST"
        words = (
            f"Method not allowed: {method[:20]}"
            if revision is None
            else f"Method not allowed in {revision[:20]}: {method[:20]}"
        )
        return error(405, t.INVALID_REQUEST, words, headers=[(b"allow", allowed)])
    if refused := _unserved(identity, head, None):
        return refused
    if method == "GET" and not head.takes_events:
        return error(406, t.INVALID_REQUEST, "Not acceptable: the answer is text/event-stream")
    if session is None:
        return error(400, t.INVALID_REQUEST, "Bad request: the header Mcp-Session-Id is missing")
    return (
        EndsSession(session, revision)
        if method == "DELETE"
        else ListensInSession(session, revision, text(head.headers, LAST_EVENT))
    )


def _judge_body(identity: Identity, head: EndpointHead, body: Frame) -> Verdict:
    said = head.version
    try:
        if not body.isascii():
            jsonrpc.check_utf8(body)
        request = identity.read_request(body)
        meta = take_meta(request.params)
    except (Malformed, *READ_ERRORS):
        repaired = without_lone_surrogates(body)
        if repaired is not None:  # so that its names are compared with the headers as they are read
            return _judge_body(identity, head, repaired)
        return _judge_unread(identity, head, body)
    if meta.protocol_version is None and (said is None or said in HANDSHAKE_REVISIONS):
        return (
            OpensSession()
            if request.method == "initialize"
            else _in_session(identity, head, request.id, request, meta)
        )
    if said not in STATELESS_REVISIONS and not _says_who(meta):
        return _unsupported(identity, said, request.id)
    name = identity.extensions.mirror(request.method, request.params)
    if refused := _mirrors(request.id, request.method, name, meta, head):
        return refused
    return Stateless(request, meta)


def _judge_unread(identity: Identity, head: EndpointHead, body: Frame) -> Verdict:
    """Judge a body that could not be decoded as a request in one pass: a notification, a response,
    a batch, an unknown method, or invalid JSON.
    """
    said = head.version
    stateless = said is not None and said not in HANDSHAKE_REVISIONS
    known = said is None or said in REVISIONS
    try:
        envelope = jsonrpc.open_envelope(body)
    except Malformed as bad:
        if jsonrpc.is_batch(body) and bad.code != t.PARSE_ERROR and not known:
            return _unsupported(identity, said, None)
        if jsonrpc.is_batch(body) and bad.code != t.PARSE_ERROR and not stateless:
            # the session decides whether its revision has batches
            return _in_session(identity, head, None)
        return error(400, bad.code, str(bad), id=bad.id)
    if not known and (envelope.method is UNSET or envelope.id is UNSET):
        return _unsupported(identity, said, None)
    if envelope.method is UNSET:
        if stateless:  # `RPC-18`
            return error(
                400,
                t.INVALID_REQUEST,
                "Invalid request: in this revision a client sends no responses",
            )
        return _in_session(identity, head, None)
    if envelope.id is UNSET:
        if stateless:
            return _unserved(identity, head, None) or Accepted()
        return _in_session(identity, head, None)
    if envelope.id is None:
        return error(
            400,
            t.INVALID_REQUEST,
            "Invalid request: the id must be a string or an integer, not null",
        )
    try:
        meta = decode(decode(envelope.params, t.Params).meta, t.RequestMeta)
    except Malformed:
        meta = t.RequestMeta()
    if meta.protocol_version is None and not stateless:
        return (
            OpensSession()
            if envelope.method == "initialize"
            else _in_session(identity, head, envelope.id)
        )
    if not known and not _says_who(meta):
        return _unsupported(identity, said, envelope.id)
    if refused := _mirrors(envelope.id, envelope.method, None, meta, head):
        return refused
    return Stateless(None, meta)


def _in_session(
    identity: Identity,
    head: EndpointHead,
    id: t.RequestId | None,
    request: Any = None,
    meta: t.RequestMeta = NO_META,
) -> HttpRefusal | InSession:
    return _unserved(identity, head, id) or InSession(head.session, head.version, request, meta)


def _unserved(identity: Identity, head: EndpointHead, id: t.RequestId | None) -> HttpRefusal | None:
    """Refuse a header with a revision that is not served, or a missing header if 2025-03-26 is not
    served (`HTL-49`, `HTL-50`, `ERA-18`).
    """
    said = head.version
    if said is None:
        knows = R2 in identity.revisions or (
            head.session is not None and any(r in HANDSHAKE_REVISIONS for r in identity.revisions)
        )
        return None if knows else _mismatch(id, "MCP-Protocol-Version", None, None)
    if said in identity.revisions:
        return None
    return _unsupported(identity, said, id)


def _says_who(meta: t.RequestMeta) -> bool:
    """Whether a request has any of the keys with which a client of the stateless era identifies
    itself.
    """
    keys = (meta.protocol_version, meta.client_capabilities, meta.client_info)
    return any(key is not None for key in keys)


def _unsupported(identity: Identity, said: str | None, id: t.RequestId | None) -> HttpRefusal:
    """Refuse a revision that only the header contains (`HTL-50`).

    An unknown revision comes from a client of the handshake era, and is refused with the code and
    in the words of that era. Any other client understands the newer code.
    """
    said = said or ""
    served = list(reversed(identity.revisions))
    data = {"supported": served, "requested": said[:_LONGEST]}
    if said in REVISIONS or (_DATE(said) and said >= STATELESS_REVISIONS[0]):
        code = t.UNSUPPORTED_PROTOCOL_VERSION
        return error(400, code, "Unsupported protocol version", data, id=id)
    words = (
        f"Bad request: the header MCP-Protocol-Version says {_short(said)}, which this server"
        f" does not support. It supports {', '.join(served)}"
    )
    code = error_code("unsupported_protocol_version", HANDSHAKE_REVISIONS[-1])
    return error(400, code, words, data, id=id)


def _mirrors(
    id: t.RequestId,
    method: str,
    name: str | None,
    meta: t.RequestMeta,
    head: EndpointHead,
) -> HttpRefusal | None:
    """Check the required keys of `_meta`, then compare headers and body (`STA-10`, `HDR-01` to
    `HDR-10`).
    """
    if meta.protocol_version is None or meta.client_capabilities is None:
        lacking = "protocolVersion" if meta.protocol_version is None else "clientCapabilities"
        return error(
            400,
            t.INVALID_PARAMS,
            f"Invalid params: _meta lacks io.modelcontextprotocol/{lacking}",
            id=id,
        )
    if head.version != meta.protocol_version:
        return _mismatch(id, "MCP-Protocol-Version", head.version, meta.protocol_version)
    mirrored = head.rpc_method
    if mirrored != method:
        return _mismatch(id, "Mcp-Method", mirrored, method)
    if name is not None and name != head.name:
        raw = head.headers.get(NAME)
        try:
            mirrored = None if raw is None else decode_value(raw.decode("latin-1"))
        except BadHeaderValue as bad:
            return error(400, t.HEADER_MISMATCH, f"Header mismatch: Mcp-Name: {bad}", id=id)
        if mirrored != name:
            return _mismatch(id, "Mcp-Name", mirrored, name)
    return None


def _mismatch(
    id: t.RequestId | None, header: str, said: str | None, meant: str | None
) -> HttpRefusal:
    if said is None:
        words = f"the header {header} is missing"
    else:
        words = f"the header {header} says {_short(said)}, the body {_short(meant or 'nothing')}"
    return error(400, t.HEADER_MISMATCH, f"Header mismatch: {words}", id=id)


def _short(words: str) -> str:
    return repr(words if len(words) <= _LONGEST else f"{words[:_LONGEST]}...")


class HeaderParams(Mapping[str, str]):
    """The headers that mirror arguments, names in lower case; the tool handler, which knows the
    schema, checks them.
    """

    __slots__ = ("_headers",)

    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    def __getitem__(self, name: str) -> str:
        key = name.encode("latin-1", "replace")
        if not key.startswith(_PARAM):
            raise KeyError(name)
        return self._headers[key].decode("latin-1")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("latin-1") for name in self._headers if name.startswith(_PARAM))

    def __len__(self) -> int:
        return sum(name.startswith(_PARAM) for name in self._headers)


def text(headers: Headers, name: bytes) -> str | None:
    """A header's value without the white space around it (`HDR-08`), None where it is missing."""
    value = headers.get(name)
    return None if value is None else value.decode("latin-1").strip(" \t")


def _name(host: str) -> str:
    """The host of a Host header or an origin, without the port; '' where it is neither."""
    found = _HOST.fullmatch(host)
    return "" if found is None else found[1] or found[2]
