"""The findings of a diagnosis: each is good, a remark, or an error.

An error says what was expected and who can fix it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from ... import types as t
from ...http11.fetch import Request
from ..oauth.errors import Culprit, Unauthorized
from ..oauth.steps import Got, Procedure, SendRequest

D = TypeVar("D", bound=Struct)
Level = Literal["ok", "info", "remark", "wrong"]
_LONGEST = 300  # the longest text of a peer that is shown, in characters
_HEADERS = (("Accept", "application/json"), ("MCP-Protocol-Version", "2026-07-28"))


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of a diagnosis.

    Attributes:
        part: The heading of the part of the diagnosis.
        level: "ok": as it should be. "info": neither good nor bad. "remark": could be better, but
            does not stop a client. "wrong": stops clients, or is not safe.
        words: The finding.
        document: Where it was found.
        expected: What a remark or an error should have been.
        advice: How to fix it.
        culprit: Who can fix it.
    """

    part: str
    level: Level
    words: str
    document: str = ""
    expected: str = ""
    advice: str = ""
    culprit: Culprit | None = None


class Report:
    """The findings in order. `on_finding` is called with each new finding.

    Attributes:
        lenient: Whether an error is reported as a remark, because a login would not use that
            server.
    """

    def __init__(self, on_finding: Callable[[Finding], object] | None = None) -> None:
        self.findings: list[Finding] = []
        self.part = ""
        self.lenient = False
        self._on_finding = on_finding

    @property
    def wrong(self) -> list[Finding]:
        """The findings that are errors."""
        return [finding for finding in self.findings if finding.level == "wrong"]

    def ok(self, words: str, document: str = "") -> None:
        """Report something that is as it should be."""
        self._add("ok", words, document)

    def info(self, words: str, document: str = "") -> None:
        """Report something that is neither good nor bad."""
        self._add("info", words, document)

    def remark(
        self,
        words: str,
        *,
        culprit: Culprit,
        document: str = "",
        expected: str = "",
        advice: str = "",
    ) -> None:
        """Report something that could be better."""
        self._add("remark", words, document, expected, advice, culprit)

    def wrong_that(
        self,
        words: str,
        *,
        culprit: Culprit,
        document: str = "",
        expected: str = "",
        advice: str = "",
    ) -> None:
        """Report something that stops clients, or is not safe."""
        self._add("remark" if self.lenient else "wrong", words, document, expected, advice, culprit)

    def failed(self, bad: Unauthorized) -> None:
        """Report the error that a login would have ended with."""
        self.wrong_that(
            bad.what,
            culprit=bad.culprit,
            document=bad.document,
            expected=bad.expected,
            advice=bad.advice,
        )

    def _add(
        self,
        level: Level,
        words: str,
        document: str = "",
        expected: str = "",
        advice: str = "",
        culprit: Culprit | None = None,
    ) -> None:
        finding = Finding(
            part=shown(self.part),
            level=level,
            words=shown(words),
            document=shown(document),
            expected=shown(expected),
            advice=shown(advice),
            culprit=culprit,
        )
        self.findings.append(finding)
        if self._on_finding is not None:
            self._on_finding(finding)


def shown(text: str) -> str:
    """Untrusted text, shortened, without characters that control a terminal."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}..."


def look(place: str) -> Procedure[Got | str]:
    """Fetch a possible address of a document. The result is the response, or text that says why
    there is none.
    """
    try:
        got: Got = yield SendRequest(Request("GET", place, _HEADERS), "discovery")
    except t.Unreachable as bad:
        return str(bad).rstrip(".")
    return got


def members_of(got: Got | str) -> dict[str, Any] | None:
    """The JSON object in a response; None if it has none."""
    if isinstance(got, str) or got.status != 200:
        return None
    try:
        data = msgspec.json.decode(got.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def outcome(got: Got | str) -> str:
    """Describe a response that is not the wanted document."""
    if isinstance(got, str):
        return got
    if got.status == 200:
        kind = got.headers.get("content-type", "").partition(";")[0].strip()
        return f"200 with {kind or 'a body'} that is not a JSON object"
    if 300 <= got.status < 400 and (leads := got.headers.get("location")):
        return f"{got.status}, a redirect to {leads}, which is not followed"
    return str(got.status)


def loosely(
    data: dict[str, Any], kind: type[D], report: Report, *, culprit: Culprit, document: str
) -> D:
    """Decode a document leniently.

    An invalid member is reported and left out. A required member becomes an empty string.
    """
    known: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in data:
            if field.required:
                known[field.name] = ""
                report.wrong_that(
                    f"`{field.encode_name}` is missing",
                    culprit=culprit,
                    document=document,
                    expected="it is required",
                )
            continue
        try:
            known[field.name] = msgspec.convert(data[field.encode_name], field.type)
        except msgspec.ValidationError as bad:
            if field.required:
                known[field.name] = ""
            value = msgspec.json.encode(data[field.encode_name]).decode("utf-8", "replace")
            report.wrong_that(
                f"`{field.encode_name}` is {shown(value)}, which does not fit",
                culprit=culprit,
                document=document,
                expected=str(bad).partition(" - ")[0].removeprefix("Expected ")
                or ("another kind of value"),
            )
    return kind(**known)
