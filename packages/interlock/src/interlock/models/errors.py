"""Errors of providers: each names the provider, the model and the remedy, and never the key."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import Struct

from interlock.redaction import Redactor

from ..untrusted.invisible import plain_line as plain
from .interface import FailureKind, ModelFailure
from .lenient_json import list_of, object_of, parsed, text_of

_LONGEST = 86_400.0  # the longest wait in seconds that an error message passes on from a provider


class ProviderIdentity(Struct, frozen=True):
    """The provider, host and model that an error names, and the secrets that it must not
    contain.
    """

    provider: str
    host: str
    model: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Who({self.provider}, {self.host}, {self.model})"

    __str__ = __repr__

    def __rich_repr__(self) -> list[Any]:
        return [self.provider, self.host, self.model]

    @property
    def words(self) -> str:
        """The provider, for a sentence."""
        return f"{self.provider} ({plain(self.model, 100)} at {self.host})"

    def quote(self, text: str, most: int = 400) -> str:
        """Untrusted text, made safe to show."""
        return plain(Redactor(self.secrets)(text), most)


class ProviderError(Struct, frozen=True):
    """The content of an error response."""

    message: str = ""
    # in lower case: type, code and status, if they are strings
    codes: frozenset[str] = frozenset()
    param: str = ""
    retry_after: float | None = None
    status: int = 0


def trouble(data: Any) -> ProviderError:
    """Parse the body of an error response, in the formats of OpenAI, vLLM, Ollama, Anthropic,
    Gemini and plain web servers.
    """
    if isinstance(data, list):
        data = data[0] if data else {}
    body = object_of(data)
    error = body.get("error", body)
    if isinstance(error, str):
        return ProviderError(message=error)
    inner = object_of(error)
    codes = {text_of(inner, name).lower() for name in ("type", "code", "status")}
    status = inner.get("code")
    retry_after = None
    for detail in list_of(inner, "details"):
        codes.add(text_of(detail, "reason").lower())
        if text_of(detail, "@type").endswith("google.rpc.RetryInfo"):
            retry_after = _seconds(text_of(detail, "retryDelay").removesuffix("s"))
    # the error of the provider behind OpenRouter
    upstream = object_of(inner, "metadata").get("raw")
    message = text_of(inner, "message") or text_of(body, "detail") or text_of(body, "message")
    if isinstance(upstream, str) and upstream:
        message = f"{message}: {upstream}"
    number = status if isinstance(status, int) and 400 <= status < 600 else 0
    return ProviderError(
        message, frozenset(codes - {""}), text_of(inner, "param"), retry_after, number
    )


def of_body(
    who: ProviderIdentity, status: int, headers: Mapping[str, str], body: bytes
) -> tuple[ModelFailure, ProviderError]:
    """The failure for an HTTP error response."""
    try:
        found = trouble(parsed(body))
    except ValueError:
        text = body[:2_000].decode("utf-8", "replace")
        found = ProviderError(
            message="" if "<html" in text.lower() or "<!doctype" in text.lower() else text
        )
    delay = retry_after(headers)
    return of(who, found, status, delay if delay is not None else found.retry_after), found


def of(
    who: ProviderIdentity, found: ProviderError, status: int, wait: float | None = None
) -> ModelFailure:
    """The failure for a parsed error. `status` is 0 if the error came in the middle of a stream."""
    kind = _kind(found, status or found.status)
    said = who.quote(found.message)
    if said and said[-1] not in ".!?…":
        said += "."
    number = f" ({status})" if status else ""
    words = (
        _WORDS[kind]
        if status != 404
        else (
            "did not find the model or the address: check the model's name and the URL, "
            "and whether the model is installed there"
        )
    )
    if found.codes & _NO_CREDIT or status == 402:
        words = "has no credit left on this account; add credit or choose another model"
    elif 300 <= status < 400:
        words = (
            "answered with a redirect, which is not followed; check the URL in the configuration"
        )
    later = (
        f" It says: wait {wait:g} seconds."
        if wait is not None and kind in ("rate_limited", "overloaded")
        else ""
    )
    return ModelFailure(
        f"{who.words} {words}{number}.{' ' + said if said else ''}{later}",
        kind,
        status=status,
        retry_after=wait,
    )


_WORDS: dict[FailureKind, str] = {
    "unreachable": "cannot be reached",
    "refused": "refuses to answer this",
    "rate_limited": "reports too many requests; try again later",
    "overloaded": "is overloaded or failing; try again later",
    "cut": "stopped in the middle of its answer; ask again",
    "too_long": "does not accept a conversation of this length; start a new one or attach less",
    "unauthorized": ("denied access; check the key in the configuration and its permissions"),
    "bad_request": "did not understand the request",
    "bad_answer": "gave an answer that cannot be read",
}

_TOO_LONG = (
    "context length",
    "context window",
    "context_length",
    "prompt is too long",
    "too many tokens",
    "input is too long",
    "maximum number of tokens",
    "exceeds the limit of",
    "maximum context",
    "input token count",
    "exceed context",
    "request too large",
)
_NO_CREDIT = frozenset({"insufficient_quota", "billing_error", "insufficient_credits"})
_NO_KEY = frozenset(
    {
        "invalid_api_key",
        "authentication_error",
        "permission_error",
        "api_key_invalid",
        "unauthenticated",
        "permission_denied",
    }
)
_FILTERED = frozenset(
    {"content_filter", "content_policy_violation", "responsibleaipolicyviolation"}
)
_BUSY = frozenset(
    {
        "overloaded_error",
        "overloaded",
        "api_error",
        "server_error",
        "internal_server_error",
        "unavailable",
        "internal",
        "timeout_error",
    }
)
_OFTEN = frozenset(
    {
        "rate_limit_error",
        "rate_limit_exceeded",
        "resource_exhausted",
        "rate_limited",
        "too_many_requests",
    }
)


def _kind(found: ProviderError, status: int) -> FailureKind:
    message = found.message.lower()
    codes = found.codes
    if status in (0, 400, 413, 422, 429, 500) and (
        codes & {"context_length_exceeded", "exceed_context_size_error", "request_too_large"}
        or any(words in message for words in _TOO_LONG)
    ):
        return "too_long"
    if codes & _NO_CREDIT or status == 402 or codes & _FILTERED:
        return "refused"
    if status in (401, 403) or codes & _NO_KEY or (status == 400 and "api key" in message):
        return "unauthorized"
    if status == 429 or codes & _OFTEN:
        return "rate_limited"
    if status >= 500 or status in (408, 425) or codes & _BUSY:
        return "overloaded"
    if status == 413:
        return "too_long"
    return (
        "bad_request"
        if status or codes & {"invalid_request_error", "invalid_argument", "not_found_error"}
        else "cut"
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds to wait by the headers of a response (RFC 9110, 10.2.3); None if they do not
    say.
    """
    exact = _seconds(headers.get("retry-after-ms", ""))
    if exact is not None:
        return exact / 1_000
    delay = headers.get("retry-after", "").strip()
    seconds = _seconds(delay)
    if seconds is not None or not delay:
        return seconds
    try:
        return min(max(0.0, parsedate_to_datetime(delay).timestamp() - time.time()), _LONGEST)
    except (ValueError, OverflowError):
        return None


def _seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return min(number, _LONGEST) if math.isfinite(number) and number >= 0 else None
