"""The audit trail of a server, as middleware: who called what, when, and how it ended."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from .. import types as t
from ..exchange import AnyResult, Exchange, Handler
from ..logs import limited
from ..store.audit_log import AuditCheck, AuditLog
from .request_log import outcome_of, outcome_of_error

log = limited("interlock.server")

_METHODS = ("tools/call", "prompts/get", "resources/read")
_MOST_CHARACTERS = 500  # of a name that a caller chose


class AuditTrail:
    """Middleware that records calls in an append-only file of JSON lines.

    `Server("shop", middleware=[AuditTrail("audit.jsonl")])`. Each call has two entries, "started"
    and "ended". They name the caller, the method, the tool, prompt or resource, the outcome and the
    duration, and never arguments or results. Each entry contains the SHA-256 of the line before it,
    so that a changed or removed line shows. All workers can write one file. A call that asks a
    question and runs again from the top has two entries for each run.

    Hazard: the chain has no key. Keep the last hash of `check` elsewhere, so that a truncated
    or rewritten file shows too.

    Args:
        path: The file. It is created with mode 0600.
        required: Whether calls are refused while their start cannot be recorded (fail-closed), and
            entries are flushed to the disk. Otherwise they run, and the log has a warning.
        methods: The methods that are recorded.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        required: bool = False,
        methods: Sequence[str] = _METHODS,
    ) -> None:
        self._log = AuditLog(path, sync=required)
        self._required = required
        self._methods = frozenset(methods)

    def check(self) -> AuditCheck:
        """Check the chain of hashes, from the first line to the last.

        Raises:
            OSError: The file cannot be read.
        """
        return self._log.check()

    def __call__(self, handler: Handler) -> Handler:
        """Wrap a handler."""

        async def handle(x: Exchange) -> AnyResult:
            if x.method not in self._methods:
                return await handler(x)
            entry = _describe(x)
            await self._start(entry)
            began = monotonic()
            outcome = ""
            try:
                result = await handler(x)
                outcome = outcome_of(result)
                return result
            except BaseException as bad:  # a tool may raise anything; questions are raised too
                outcome = outcome_of_error(bad)
                raise
            finally:
                seconds = round(monotonic() - began, 6)
                await self._end({**entry, "outcome": outcome, "seconds": seconds})

        return handle

    async def _start(self, entry: Mapping[str, Any]) -> None:
        try:
            await self._append({**entry, "event": "started"})
        except (OSError, ValueError) as bad:
            if self._required:
                log.error("a call is refused, because the audit trail cannot be written: %s", bad)
                words = "The server cannot record this call, so it does not run it."
                raise t.McpError(t.INTERNAL_ERROR, words, {"reason": "audit"}) from bad
            log.warning("a call runs without its entry in the audit trail: %s", bad)

    async def _end(self, entry: Mapping[str, Any]) -> None:
        try:
            await self._append({**entry, "event": "ended"})
        except (OSError, ValueError) as bad:
            log.error("the end of a call is not in the audit trail: %s", bad)

    async def _append(self, entry: Mapping[str, Any]) -> None:
        """Append an entry, in a thread and to the end, even if the call is cancelled meanwhile."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        appending = asyncio.ensure_future(
            asyncio.to_thread(self._log.append, {"time": time, **entry})
        )
        try:
            await asyncio.shield(appending)
        except asyncio.CancelledError:
            await asyncio.wait({appending})
            raise


def _describe(x: Exchange) -> dict[str, Any]:
    """Return the part of an entry that is known when the call starts."""
    caller = x.caller
    principal = caller.principal
    request = x.transport.request
    entry: dict[str, Any] = {
        "id": os.urandom(8).hex(),
        "method": x.method,
        "name": _bounded(str(getattr(x.params, "name", None) or getattr(x.params, "uri", ""))),
        "subject": None if principal is None else _bounded(principal.subject),
        "anonymous": caller.anonymous,
    }
    if principal is not None:
        entry["issuer"] = _bounded(principal.issuer)
        entry["client"] = _bounded(principal.client)
        if principal.actor:
            entry["actor"] = _bounded(principal.actor)
    if caller.info is not None:
        entry["program"] = _bounded(f"{caller.info.name} {caller.info.version}")
    if request is not None and request.client is not None:
        entry["address"] = _bounded(request.client)
    if x.replayed:
        entry["replayed"] = True
    return entry


def _bounded(text: str) -> str:
    """Shorten what a caller chose, and replace what UTF-8 cannot encode."""
    return text[:_MOST_CHARACTERS].encode("utf-8", "replace").decode()
