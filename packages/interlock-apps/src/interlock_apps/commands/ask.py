"""`interlock ask`: asks a model one question, for scripts. A policy replaces the person."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from interlock import types as t
from interlock.cli import exits
from interlock.cli.answers.answering import AnswersGiven, answers_given
from interlock.cli.client.values import string_arguments
from interlock.cli.screen import escaped, note, print_json, result_text
from interlock.redaction import Redactor, redacted
from interlock.typed.form_fields import check as check_form
from interlock.typed.form_fields import defaults

from ..fleet.events import (
    Attached,
    CallDecided,
    CallEnded,
    CallProposed,
    LogEntry,
    ModelSays,
    Notice,
    ServerState,
    TurnEnded,
)
from ..fleet.log import LogError
from ..fleet.questions import (
    Answer,
    AnyQuestion,
    CallQuestion,
    Decision,
    Filled,
    FormQuestion,
    NotAnswered,
    ResultQuestion,
    SampledQuestion,
    SampleQuestion,
    StartQuestion,
)
from ..host.attachments import AttachedFile
from ..host.session import Session
from .host_factory import host_of
from .options import given_of, with_host_options
from .running_hosts import give_run

ENDS = {
    "done": exits.OK,
    "refused": exits.REFUSED,
    "failed": exits.UNREACHABLE,
}  # all others: exits.TOOL_FAILED
ALLOW = "Allow it in `interlock host` or `interlock chat`, or pass its file with --config."
MOST_GIVEN = 2_000  # characters of a call's arguments that are printed
WORDS = """\b
Exit codes:
  0    the model answered
  1    it reached a limit (steps, tokens, time), or could not start
  2    wrong usage
  3    the model refused, or a server refused the attachment or the prompt
  4    the model gave no answer, or the server of an attachment cannot be reached
  130  interrupted
"""


@click.command("ask", epilog=WORDS)
@click.argument("words", nargs=-1, required=True, metavar="TEXT...")
@with_host_options
@click.option(
    "--prompt",
    "prompt",
    metavar="SERVER/NAME",
    help="Send a server's prompt; TEXT then has its arguments: name=value, or - for none.",
)
@click.option(
    "--attach",
    multiple=True,
    metavar="SERVER=URI",
    help="A resource to attach to the question; can be repeated.",
)
@click.option(
    "--file",
    "paths",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A text, picture, sound or PDF to send with the question; can be repeated.",
)
@click.option(
    "--answers",
    metavar="JSON",
    help="Values for forms that servers show: an object {field: value}, or @FILE.",
)
@click.option(
    "--sampling", is_flag=True, help="Let servers ask the model, as often as the limits allow."
)
@click.option(
    "--json",
    "machine",
    is_flag=True,
    help="Print one JSON object: the answer, the outcome, and every call.",
)
@click.option("--events", is_flag=True, help="Print every event as a line of JSON, as it happens.")
@click.option(
    "--background",
    is_flag=True,
    help=(
        "Give the question to the host that runs already, and end at once. Its questions to you "
        "wait in the page."
    ),
)
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help=(
        "With --background: the folder in which that host was started.  [this folder, or one above]"
    ),
)
def ask(
    words: Sequence[str],
    prompt: str | None,
    attach: Sequence[str],
    paths: Sequence[str],
    answers: str | None,
    sampling: bool,
    machine: bool,
    events: bool,
    background: bool,
    folder: Path | None,
    **options: Any,
) -> None:
    """Ask a model once, with the tools of servers, and print its answer.

    The command cannot ask you: calls that the policy does not allow are refused, and so are forms
    without a fitting entry in --answers. Servers are started when their file is named by --config,
    or when you have allowed them before (in `interlock host` or `chat`). TEXT - reads the question
    from stdin.

    \b
    interlock ask "What does the calendar say for June 2024?" -c servers.json \\
      -m ollama:llama3.2 --policy read-only.toml
    """
    text = " ".join(words)
    if background:
        _ask_in_background(
            text,
            folder,
            {
                **options,
                "prompt": prompt,
                "attach": attach,
                "answers": answers,
                "sampling": sampling,
                "machine": machine,
                "events": events,
            },
        )
        return
    if folder is not None:
        raise click.UsageError("Give --folder together with --background.")
    given = given_of(options)
    if machine and events:
        raise click.UsageError("Give --json or --events, not both.")
    stated = answers_given(False, answers)
    if stated.in_order is not None:
        raise click.UsageError("--answers must be an object {field: value}.")
    server, _, name = (prompt or "").partition("/")
    if prompt is not None and not (server and name):
        raise click.UsageError(
            f"--prompt {prompt}: write SERVER/NAME, such as travel/plan-vacation."
        )
    said = string_arguments(words) if prompt is not None and text != "-" else {}
    attached = [_attached(each) for each in attach]
    if paths and prompt is not None:
        raise click.UsageError("Give --file or --prompt, not both.")
    if text == "-" and prompt is None:
        text = sys.stdin.read()
    if not text.strip():
        raise click.UsageError("The question is empty.")
    # Nobody reads a message that comes later, so the turn waits for tasks.
    host = host_of(given, ask=False, ask_to_start=not given.configs, task_wait=None)
    host.prompter.person = PresetAnswers(stated, sampling)
    report = AskReport(machine, events, given.secrets)
    host.listen(report.receive)

    async def run() -> tuple[TurnEnded, Session]:
        async with host:
            session = host.session()
            if prompt is None:
                files = [await asyncio.to_thread(AttachedFile.read, path) for path in paths]
                return await session.say(text, attach=attached, files=files), session
            return await session.prompt(server, name, said, attach=attached), session

    try:
        ended, session = asyncio.run(run())
    except (t.InterlockError, LogError, OSError) as bad:
        report.failed(str(bad))
        click.get_current_context().exit(_code(bad))
    report.ended(ended, session)
    code = ENDS.get(ended.reason, exits.TOOL_FAILED)
    if code:
        click.get_current_context().exit(code)


def _ask_in_background(text: str, folder: Path | None, others: dict[str, Any]) -> None:
    """Give a question to a running host, which has its own servers and settings."""
    models = others.pop("models")
    unfitting = [name for name, value in others.items() if value not in (None, False, (), "")]
    if unfitting:
        raise click.UsageError(
            "Give only --model and --folder with --background: the host has its own settings."
        )
    if len(models) > 1:
        raise click.UsageError("With --background, give one --model.")
    if text == "-":
        text = sys.stdin.read()
    session = give_run(folder, text, models[0] if models else "")
    click.echo(session)
    note("It runs in the host. Its questions wait in the page, and so does its answer.")


class PresetAnswers:
    """Answers from the command line: `--answers` for forms, `--sampling` for sampling.

    Every other question is denied.
    """

    def __init__(self, given: AnswersGiven, sampling: bool) -> None:
        self._fields = given.fields or {}
        self._sampling = sampling

    async def answer(self, question: AnyQuestion) -> Answer:
        """See UserInterface."""
        if isinstance(question, SampleQuestion | SampledQuestion) and self._sampling:
            return Decision(allow=True)
        if isinstance(question, FormQuestion):
            content = {
                **defaults(question.fields),
                **{f.name: self._fields[f.name] for f in question.fields if f.name in self._fields},
            }
            known = any(field.name in self._fields for field in question.fields)
            if known and not check_form(question.requested_schema, content):
                return Filled(action="accept", content=content)
            return NotAnswered(words="--answers has no fitting answer to this form.")
        if isinstance(question, StartQuestion):
            return NotAnswered(words=f"This command cannot ask a user. {ALLOW}")
        if isinstance(question, SampleQuestion | SampledQuestion):
            return NotAnswered(
                words="This command cannot ask a user. --sampling lets servers ask the model."
            )
        if isinstance(question, CallQuestion | ResultQuestion):
            return NotAnswered(
                words="This command cannot ask a user. Allow it by a rule of --policy."
            )
        return NotAnswered(words="This command cannot ask a user.")


class AskReport:
    """Prints events: for people text on stdout and remarks on stderr, for machines JSON."""

    def __init__(self, machine: bool, events: bool, secrets: Redactor) -> None:
        self._machine = machine
        self._events = events
        self._secrets = secrets
        self._calls: dict[str, dict[str, Any]] = {}
        self._notices: list[str] = []
        self._line_open = False
        self._reader_is_there = True  # False once the reader of stdout has gone

    def receive(self, noted: LogEntry) -> None:
        """Handle an event."""
        event = noted.event
        if self._events:
            plain = msgspec.json.decode(
                msgspec.json.encode(noted)
            )  # the same JSON types as in the log
            self._put(escaped(msgspec.json.encode(redacted(plain, self._secrets)).decode()) + "\n")
        if isinstance(event, CallProposed):
            self._calls[event.call] = {
                "server": event.server,
                "tool": event.tool or event.name,
                "arguments": event.arguments,
            }
        elif isinstance(event, CallDecided) and event.call in self._calls:
            edited = {} if event.arguments is None else {"arguments": event.arguments}
            self._calls[event.call].update(
                allowed=event.allow, by=event.by, why=event.why, **edited
            )
            if not event.allow:
                self._remark(
                    f"not called: {self._name(event.call)}{self._given(event.call)}. {event.why}",
                    "yellow",
                )
        elif isinstance(event, CallEnded) and event.call in self._calls:
            failed = event.error or (
                event.result.text if event.result is not None and event.result.is_error else ""
            )
            warned = [
                f"{each.words} ({each.where})" if each.where else each.words
                for each in event.warnings
            ]
            self._calls[event.call].update(seconds=event.seconds, error=failed, warnings=warned)
            if warned:
                name = self._name(event.call)
                words = (
                    f"The result of {name} seems to give orders to the model: {' '.join(warned)}"
                )
                self._remark(words, "yellow")
            if self._calls[event.call].get("allowed"):
                self._remark(
                    f"called: {self._name(event.call)}{self._given(event.call)}"
                    + (f": {failed}" if failed else ""),
                    "red" if failed else "cyan",
                )
        elif isinstance(event, Notice):
            self._notices.append(event.words)
            self._remark(
                f"{event.server}: {event.words}" if event.server else event.words, "yellow"
            )
        elif isinstance(event, ServerState) and event.state in ("down", "refused", "login"):
            words = f"{event.server} is not available: {event.words}" + (
                f" {ALLOW}" if event.state == "refused" else ""
            )
            self._notices.append(words)
            self._remark(words, "yellow")
        elif (
            isinstance(event, ModelSays)
            and event.kind == "text"
            and not (self._machine or self._events)
        ):
            self._put(result_text(self._secrets(event.text)))
            self._line_open = True

    def ended(self, ended: TurnEnded, session: Session) -> None:
        """Print the outcome of the turn."""
        if self._machine:
            usage = {"input": ended.usage.input, "output": ended.usage.output}
            answer = {
                "answer": _last(session),
                "reason": ended.reason,
                "words": ended.words,
                "model": session.model.name,
                "session": session.id,
                "usage": usage,
                "calls": list(self._calls.values()),
                "notices": self._notices,
            }
            print_json(redacted(answer, self._secrets))
            return
        self._close()
        if ended.words:
            self._remark(ended.words, "yellow")

    def failed(self, words: str) -> None:
        """Print why the run could not start, or failed."""
        if self._machine:
            print_json({"error": {"message": self._secrets(words)}})
        else:
            self._close()
            note(self._secrets(f"Error: {words}"), fg="red")

    def _put(self, text: str) -> None:
        if self._reader_is_there:
            try:
                click.echo(text, nl=False)
            except BrokenPipeError:
                self._reader_is_there = False

    def _name(self, call: str) -> str:
        known = self._calls[call]
        return f"{known['tool']} of {known['server']}" if known["server"] else str(known["tool"])

    def _given(self, call: str) -> str:
        """The arguments of a call in one line, and how many characters were cut."""
        arguments = self._calls[call]["arguments"]
        if not arguments:
            return ""
        text = self._secrets(msgspec.json.encode(arguments, enc_hook=str).decode())
        left = len(text) - MOST_GIVEN
        more = f" … and {left:,} characters more, see --json" if left > 0 else ""
        return f" {text[:MOST_GIVEN]}{more}"

    def _remark(self, words: str, colour: str) -> None:
        if not (self._machine or self._events):
            self._close()
            note(self._secrets(words), fg=colour)

    def _close(self) -> None:
        if self._line_open:
            self._put("\n")
            self._line_open = False


def _code(bad: Exception) -> int:
    if isinstance(bad, t.Unreachable):
        return exits.UNREACHABLE
    return exits.TOOL_FAILED if isinstance(bad, LogError | OSError) else exits.REFUSED


def _last(session: Session) -> str:
    """The text of the model's last message."""
    for message in reversed(session.messages):
        if message.role == "assistant":
            blocks = message.content if isinstance(message.content, list) else [message.content]
            return "\n".join(block.text for block in blocks if isinstance(block, t.TextContent))
    return ""


def _attached(text: str) -> Attached:
    server, equals, uri = text.partition("=")
    if not equals or not server or not uri:
        raise click.UsageError(
            f"--attach {text}: write SERVER=URI, such as travel=travel://preferences/europe."
        )
    return Attached(server=server, uri=uri)
