"""Connects a command to a server, runs its work, and turns every error into an exit code."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import click
import msgspec
from msgspec import Struct

from ... import Answers, Client, ClientSettings, Implementation, UnsupportedRevision
from ... import types as t
from ...client.app import DEFAULT_TIMEOUT
from ...wire.jsonrpc import Frame
from ...wire.revisions import HANDSHAKE_REVISIONS
from .. import exits
from ..answers.answering import Answering, AnswersGiven
from ..answers.sampling import Sample, Sampling
from ..screen import ERROR, WARNING, note, print_json
from ..targets.reach import Reach

_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
Work = Callable[[Client], Coroutine[Any, Any, int | None]]


class ConnectionSettings(Struct):
    """The settings of a command's connection.

    Attributes:
        reach: Makes the transport.
        answers: The answers to the server's questions.
        timeout: In seconds; None for the client's own.
        withheld: The variables of this process that the started server did not get.
        sampling: The answers to sampling requests.
    """

    reach: Reach
    answers: AnswersGiven
    revision: str | None
    timeout: float | None
    machine: bool
    verbose: bool
    log_level: t.LoggingLevel
    roots: tuple[Path, ...]
    withheld: frozenset[str] = frozenset()
    sampling: Sampling = Sampling()

    def run(self, work: Work) -> None:
        """Open a client, run the work with it, close it, and exit. The work returns its exit code;
        None is success.
        """
        code = self._guarded(lambda: asyncio.run(self._talk(work)))
        if code:
            click.get_current_context().exit(code)

    async def _talk(self, work: Work) -> int | None:
        async with self.sampling.opened() as sample:
            return await self._converse(work, sample)

    async def _converse(self, work: Work, sample: Sample | None) -> int | None:
        answering = Answering(self.answers)
        client = Client(
            self.reach(
                self._show if self.verbose else None,
                self._show_stderr if self.verbose else _warnings(),
            ),
            answers=Answers(
                elicit=answering.answer,
                sample=sample,
                roots=list(self.roots) or None,
                tools=bool(self.sampling.model),
            ),
            on_log=_show_log,
            info=Implementation(name="interlock-cli", version="1"),
            revision=self.revision,
            log_level=self.log_level,
            timeout=self.timeout if self.timeout is not None else DEFAULT_TIMEOUT,
            settings=ClientSettings(older_for_questions=self._calls_again),
        )
        try:
            async with asyncio.timeout(self.timeout):
                await client.open()
        except TimeoutError:
            raise t.TimedOut(
                f"The server did not answer within {self.timeout:g} seconds."
            ) from None
        doing = asyncio.ensure_future(work(client))
        open_ends: set[asyncio.Future[Any]] = {doing, answering.unanswered}
        try:
            await asyncio.wait(open_ends, return_when=asyncio.FIRST_COMPLETED)
            if doing.done():
                return doing.result()
            self._fail("unanswered", answering.unanswered.result())
            return exits.USAGE
        finally:
            doing.cancel()  # an unanswered question cancels the call, also at the server
            await asyncio.gather(doing, return_exceptions=True)
            await client.aclose()

    async def _calls_again(self, params: t.CallToolRequestParams) -> bool:
        """Whether to repeat a call whose server can ask its question only under an older
        revision.
        """
        if not self.machine and sys.stdin.isatty() and sys.stderr.isatty():
            from ..answers.terminal_dialogs import Dismissed, TerminalDialogs  # late: few ask

            try:
                return await TerminalDialogs().calls_again(params.name)
            except Dismissed:
                return False
        note(f"To start with an older revision: --revision {HANDSHAKE_REVISIONS[-1]}")
        return False

    def _guarded(self, do: Callable[[], int | None]) -> int | None:
        """Run a function that talks to a server, and return the exit code for its errors."""
        try:
            return do()
        except t.McpError as bad:
            self._fail("refused", bad.message, code=bad.code, data=bad.data)
            if bad.code == t.MISSING_CLIENT_CAPABILITY and "sampling" in bad.message:
                self._hint("It asks for a model: answer with --sample TEXT or --model NAME.")
            return exits.REFUSED
        except t.TaskCancelled as bad:
            self._fail("cancelled", str(bad))
            return exits.TOOL_FAILED
        except UnsupportedRevision as bad:
            self._fail("protocol", str(bad))
            return exits.REFUSED
        except t.ProtocolError as bad:
            self._fail("protocol", str(bad))
            return exits.REFUSED
        except t.Unreachable as bad:
            if words := _why_it_cannot_run(bad):
                self._fail("target", words)
                return exits.USAGE
            self._fail("unreachable", str(bad if self.verbose else _without_warnings(bad)))
            if hint := variables_hint(str(bad), self.withheld):
                self._hint(hint)
            return exits.UNREACHABLE
        except ImportError as bad:  # the extra that this connection needs is not installed
            self._fail("missing", str(bad))
            return exits.UNREACHABLE

    def _fail(self, kind: str, message: str, **detail: Any) -> None:
        """Report an error: as JSON on stdout for programs, on stderr for people."""
        detail = {key: value for key, value in detail.items() if value is not None}
        if self.machine:
            print_json({"error": {"kind": kind, "message": message, **detail}})
            return
        code = f" (code {detail['code']})" if "code" in detail else ""
        note(f"Error: {message}{code}", fg="red")
        if "data" in detail:
            note(f"  data: {msgspec.json.encode(detail['data']).decode()}", fg="red")

    def _hint(self, words: str) -> None:
        """Give people a hint."""
        if not self.machine:
            note(words, dim=True)

    @staticmethod
    def _show(sender: str, frame: Frame) -> None:
        arrow, colour = ("-->", "cyan") if sender == "client" else ("<--", "magenta")
        note(f"{arrow} {frame.decode('utf-8', 'replace')}", fg=colour)

    @staticmethod
    def _show_stderr(line: str) -> None:
        note(f"  | {line}", dim=True)


def variables_hint(last_words: str, withheld: frozenset[str]) -> str:
    """How to pass a variable to a server that exited because it was missing; empty if there was
    another reason.

    Args:
        last_words: The stderr output of the server.
        withheld: The names of the variables of this process that it did not get.
    """
    named = sorted({word for word in _VARIABLE.findall(last_words) if word in withheld})
    if not named:
        return ""
    options = " ".join(f"--env {name}" for name in named)
    return f"The server did not get your {', '.join(named)}: {options}"


def _why_it_cannot_run(bad: t.Unreachable) -> str:
    """The error that `interlock run --dev`, started by this command, reported about the file; empty
    for any other error.
    """
    lines = [line for line in bad.stderr.splitlines() if line.startswith(ERROR)]
    return lines[-1].removeprefix(ERROR) if lines and bad.exit_code == exits.USAGE else ""


def _warnings() -> Callable[[str], None]:
    """Return a function that shows the warnings of development mode in a server's stderr output.

    Each is shown once, because a server may be started twice before the connection is open.
    """
    shown: set[str] = set()

    def show_warning(line: str) -> None:
        if line.startswith(WARNING) and line not in shown:
            shown.add(line)
            note(f"Warning: {line.removeprefix(WARNING)}", fg="yellow")

    return show_warning


def _without_warnings(bad: t.Unreachable) -> t.Unreachable:
    """The error without the warnings that were already shown."""
    left = [line for line in bad.stderr.splitlines() if not line.startswith(WARNING)]
    return t.Unreachable(
        str(bad.args[0]), exit_code=bad.exit_code, stderr="\n".join(left), status=bad.status
    )


def _show_log(params: t.LoggingMessageNotificationParams) -> None:
    data = params.data if isinstance(params.data, str) else click.unstyle(str(params.data))
    colour = {"debug": "white", "info": "white", "notice": "blue", "warning": "yellow"}.get(
        params.level, "red"
    )
    note(f"[{params.level}] {params.logger + ': ' if params.logger else ''}{data}", fg=colour)
