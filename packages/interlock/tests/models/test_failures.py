"""What goes wrong at a provider, in words; and the key, which is in none of them."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import time
import traceback
from typing import Any

import pytest

from interlock.models.errors import retry_after
from interlock.models.interface import ModelFailure
from tests.models.asking import ADAPTERS, KEY, Pauses, collect, received, request
from tests.models.providers import Act, Site

QUOTA = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}],
    }
}
NO_KEY = {
    "error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
        ],
    }
}
TOO_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in "
    "9000 tokens."
)

TABLE: list[tuple[str, int, Any, str, str]] = [
    (
        "openai",
        400,
        {
            "error": {
                "message": TOO_LONG,
                "type": "invalid_request_error",
                "code": "context_length_exceeded",
            }
        },
        "too_long",
        "start a new",
    ),
    (
        "openai",
        400,
        {"object": "error", "message": TOO_LONG, "type": "BadRequestError", "code": 400},
        "too_long",
        "start a new",
    ),
    (
        "openai",
        400,
        {"error": {"message": "Invalid type", "type": "invalid_request_error"}},
        "bad_request",
        "Invalid type",
    ),
    (
        "openai",
        400,
        {"error": {"message": "Filtered", "code": "content_filter"}},
        "refused",
        "Filtered",
    ),
    (
        "openai",
        401,
        {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}},
        "unauthorized",
        "check the key",
    ),
    (
        "openai",
        402,
        {"error": {"message": "Insufficient credits", "code": 402}},
        "refused",
        "no credit",
    ),
    (
        "openai",
        403,
        {"error": {"message": "Country not supported"}},
        "unauthorized",
        "Country not supported",
    ),
    (
        "openai",
        404,
        {"error": {"message": 'model "x" not found, try pulling it first'}},
        "bad_request",
        "try pulling it",
    ),
    ("openai", 404, b"404 page not found", "bad_request", "check the model's name and the URL"),
    ("openai", 413, b"<html>too large</html>", "too_long", "413"),
    ("openai", 422, {"detail": "Input should be a valid list"}, "bad_request", "valid list"),
    (
        "openai",
        429,
        {"error": {"message": "Quota", "code": "insufficient_quota", "type": "insufficient_quota"}},
        "refused",
        "no credit",
    ),
    (
        "openai",
        500,
        {"error": "model runner has stopped"},
        "overloaded",
        "model runner has stopped",
    ),
    ("openai", 502, b"<html>Bad gateway</html>", "overloaded", "502"),
    ("openai", 301, b"", "bad_request", "answered with a redirect"),
    (
        "anthropic",
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"},
        },
        "too_long",
        "9 > 8",
    ),
    (
        "anthropic",
        401,
        {
            "type": "error",
            "error": {"type": "authentication_error", "message": "invalid x-api-key"},
        },
        "unauthorized",
        "x-api-key",
    ),
    (
        "anthropic",
        403,
        {"type": "error", "error": {"type": "permission_error", "message": "Not for you"}},
        "unauthorized",
        "Not for you",
    ),
    (
        "anthropic",
        404,
        {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-0"}},
        "bad_request",
        "claude-0",
    ),
    (
        "anthropic",
        413,
        {"type": "error", "error": {"type": "request_too_large", "message": "Too large"}},
        "too_long",
        "attach less",
    ),
    (
        "anthropic",
        429,
        {"type": "error", "error": {"type": "rate_limit_error", "message": "Slow"}},
        "rate_limited",
        "try again later",
    ),
    (
        "anthropic",
        500,
        {"type": "error", "error": {"type": "api_error", "message": "Internal"}},
        "overloaded",
        "Internal",
    ),
    (
        "anthropic",
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "overloaded",
        "529",
    ),
    ("gemini", 400, NO_KEY, "unauthorized", "check the key"),
    (
        "gemini",
        400,
        {
            "error": {
                "code": 400,
                "message": "The input token count (9) exceeds the maximum number of tokens",
            }
        },
        "too_long",
        "(9)",
    ),
    (
        "gemini",
        400,
        {"error": {"code": 400, "message": "Bad schema", "status": "INVALID_ARGUMENT"}},
        "bad_request",
        "Bad schema",
    ),
    (
        "gemini",
        403,
        {"error": {"code": 403, "message": "Denied", "status": "PERMISSION_DENIED"}},
        "unauthorized",
        "Denied",
    ),
    (
        "gemini",
        404,
        {"error": {"code": 404, "message": "models/x is not found", "status": "NOT_FOUND"}},
        "bad_request",
        "models/x",
    ),
    ("gemini", 429, QUOTA, "rate_limited", "wait 34.5 seconds"),
    (
        "gemini",
        503,
        [{"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}}],
        "overloaded",
        "Overloaded",
    ),
]


@pytest.mark.parametrize("speaks, status, body, kind, words", TABLE)
async def test_documented_errors(
    speaks: str, status: int, body: Any, kind: str, words: str
) -> None:
    """HST-01: each error by its kind, in one line that names provider, model and place, says what
    to do, and does not show the key.
    """
    async with Site(Act(status=status, body=body)) as site:
        model = ADAPTERS[speaks](
            "m", model="model-1", url=getattr(site, speaks), key=KEY, sleep=Pauses()
        )
        with pytest.raises(ModelFailure, match="model-1 at 127.0.0.1") as caught:
            await received(model, request())
        failure = caught.value
        assert (failure.kind, failure.status) == (kind, status)
        assert words in str(failure)
        assert "\n" not in str(failure)
        assert KEY not in str(failure)
        assert "<html>" not in str(failure)
        await model.aclose()


async def test_blocked_by_gemini() -> None:
    """HST-01: a request that is blocked, and a call that is muddled, say why."""
    bodies = [
        (
            {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}},
            "refused",
            "PROHIBITED_CONTENT",
        ),
        (
            {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "foo("}]},
            "bad_answer",
            "foo\\(",
        ),
        (
            {"candidates": [{"finishReason": "SAFETY", "finishMessage": "no"}]},
            "refused",
            "SAFETY: no",
        ),
    ]
    async with Site(*(Act(body=body) for body, _, _ in bodies)) as site:
        model = ADAPTERS["gemini"]("m", model="model-1", url=site.gemini)
        for _, kind, words in bodies:
            with pytest.raises(ModelFailure, match=words) as caught:
                await received(model, request())
            assert caught.value.kind == kind
        await model.aclose()


@pytest.mark.parametrize("speaks", list(ADAPTERS))
async def test_the_key_is_shown_nowhere(speaks: str, caplog: pytest.LogCaptureFixture) -> None:
    """SEC-01: no repr, no words, no traceback, no log and no piece has the key, also where a server
    repeats it.
    """
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    echo = {"error": {"message": f"You sent {KEY}, {KEY}!", "type": KEY, "code": KEY}}
    acts = [
        Act(status=status, body=echo)
        for status in (400, 401, 429, 429, 429, 429, 500, 500, 500, 500)
    ]
    async with Site(*acts, Act(status=401, body=KEY.encode())) as site:
        shown: list[str] = []
        model = ADAPTERS[speaks](
            "m", model="model-1", url=getattr(site, speaks), key=KEY, sleep=Pauses()
        )
        shown += [
            repr(model),
            str(model),
            repr(model.who),
            repr(vars(model)),
            str(list(model.__rich_repr__())),
        ]
        for _ in range(5):
            came: list[Any] = []
            with pytest.raises(ModelFailure) as caught:
                await collect(model, came)
            shown += [repr(piece) for piece in came]
            shown += [
                str(caught.value),
                repr(caught.value),
                "".join(traceback.format_exception(caught.value)),
            ]
        await model.aclose()
    with pytest.raises(ValueError, match="printable") as wrong:
        ADAPTERS[speaks]("m", model="x", url="http://here", key=f"{KEY}\nX-Evil: 1")
    shown += [str(wrong.value), caplog.text]
    assert len(shown) > 20
    assert not [words for words in shown if KEY in words]


@pytest.mark.parametrize("speaks", list(ADAPTERS))
@pytest.mark.parametrize(
    "url", ["ftp://a", "here", "https://", "https://a:b@c", "https://a/?key=1", "https://a/#x"]
)
def test_addresses_that_cannot_be_used(speaks: str, url: str) -> None:
    """SEC-01: keys in addresses are refused, like what is no address."""
    with pytest.raises(ValueError, match="a model's URL"):
        ADAPTERS[speaks]("m", model="x", url=url)


def test_how_long_to_wait() -> None:
    """SAM-19: seconds, milliseconds or a date; nonsense says nothing."""
    soon = email.utils.formatdate(time.time() + 1_000, usegmt=True)
    assert retry_after({"retry-after": "7"}) == 7
    assert retry_after({"retry-after-ms": "250", "retry-after": "7"}) == 0.25
    assert 900 < (retry_after({"retry-after": soon}) or 0) <= 1_000
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    for nonsense in ("", "soon", "-1", "nan", "inf", "Wed, 99 Foo"):
        assert retry_after({"retry-after": nonsense}) is None
