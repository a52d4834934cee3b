"""Views of questions at the terminal: who asks, what for, and the warnings."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.padding import Padding
from rich.text import Text

from interlock import ToolAnnotations
from interlock.cli.answers.form_filling import value_text
from interlock.cli.screen import shown as seen
from interlock.configs import start_facts
from interlock.typed.form_fields import FormField, remark
from interlock.types import CreateMessageRequestParams

from ...fleet.policy import hints
from ...fleet.questions import (
    AnyQuestion,
    CallQuestion,
    FeatureChange,
    FormQuestion,
    PinQuestion,
    PlanQuestion,
    PlanStep,
    ResultQuestion,
    SampledQuestion,
    SampleQuestion,
    StartQuestion,
    UrlQuestion,
)
from .output import in_line
from .results import MediaFiles, blocks, whole, yaml_lines

_COUNTED = {"is new": "new", "has changed since it was approved": "changed", "is gone": "gone"}
_KINDS = {"tool": "tool", "prompt": "prompt", "instructions": "instructions", "skill": "skill"}


def question_view(question: AnyQuestion, media: MediaFiles, width: int) -> list[Any]:
    """The view above the keys of a question. It names the server that caused the question."""
    body: list[Any]
    if isinstance(question, CallQuestion):
        body = _call(question)
    elif isinstance(question, ResultQuestion):
        body = [
            _head(question, f"has the result of {seen(question.title)}"),
            "May the model see it?",
            *map(_in, whole(question.result, media, width)),
        ]
    elif isinstance(question, SampleQuestion):
        body = [
            _head(question, "wants to ask a model"),
            *request_lines(question.request, question.model, question.left, media),
        ]
    elif isinstance(question, SampledQuestion):
        words = f"gets this answer from {in_line(question.model, 60)} if you allow it"
        body = [_head(question, words), *map(_in, blocks(question.result.content, media))]
    elif isinstance(question, FormQuestion):
        body = [_head(question, "asks you"), _in(Text(seen(question.message), overflow="fold"))]
    elif isinstance(question, UrlQuestion):
        body = [
            _head(question, "wants you to visit a page"),
            _in(Text(seen(question.message), overflow="fold")),
            address(question.url, question.host, question.site),
        ]
    elif isinstance(question, PinQuestion):
        body = _pin(question)
    elif isinstance(question, PlanQuestion):
        words = f"plans {len(question.steps):,} steps"
        body = [Text(f"? The model {words}", style="bold magenta")]
        for number, step in enumerate(question.steps, 1):
            body += plan_step(step, number)
    else:
        body = _start(question)
    return [Text(""), *body, *warnings(question)]


def _in(renderable: Any) -> Padding:
    return Padding(renderable, (0, 0, 0, 2))


def _head(question: AnyQuestion, words: str) -> Text:
    who = in_line(question.server, 80) or "The host"
    return Text.assemble(
        ("? ", "bold magenta"), (who, "bold magenta"), (f" {words}", "bold"), overflow="fold"
    )


def warnings(question: AnyQuestion) -> list[Any]:
    """The warnings of a question, one line each."""
    return [
        Text(
            f"! {f'{in_line(each.where, 120)}: ' if each.where else ''}{seen(each.words)}",
            style="bold yellow",
            overflow="fold",
        )
        for each in question.warnings
    ]


def _call(question: CallQuestion) -> list[Any]:
    who = {"model": "The model", "app": "An app of the server", "person": "You"}[question.by]
    title = (
        f" ({in_line(question.title, 80)})"
        if question.title and question.title != question.tool
        else ""
    )
    body: list[Any] = [_head(question, f"may be asked to run {in_line(question.tool, 80)}{title}")]
    body.append(
        Text(f"  {who} wants this call. {seen(question.why)}", style="dim", overflow="fold")
    )
    if question.risk:
        body.append(Text(f"! {seen(question.risk)}", style="bold yellow", overflow="fold"))
    body.append(_arguments(question.arguments))
    return body


def _arguments(arguments: Mapping[str, Any]) -> Padding:
    lines = yaml_lines(arguments) if arguments else ["(no arguments)"]
    return _in(Text("\n".join(lines), overflow="fold"))


def group_view(questions: Sequence[CallQuestion]) -> list[Any]:
    """The view of several calls of one step: grouped by tool, with all arguments of each call."""
    shown: list[Any] = [
        Text(""),
        Text(f"? The model wants to make {len(questions):,} calls at once", style="bold magenta"),
    ]
    by_tool: dict[tuple[str, str], list[CallQuestion]] = {}
    for question in questions:
        by_tool.setdefault((question.server, question.tool), []).append(question)
    for (server, tool), calls in by_tool.items():
        count = f", {len(calls):,} times" if len(calls) > 1 else ""
        head = f"  {in_line(tool, 80)} of {in_line(server, 80)}{count}"
        shown.append(Text(head, style="bold", overflow="fold"))
        for number, call in enumerate(calls, 1):
            if len(calls) > 1:
                shown.append(Text(f"  {number}", style="dim"))
            shown.append(_arguments(call.arguments))
    return shown


def plan_step(step: PlanStep, number: int) -> list[Any]:
    """A step of a plan: the tool, what it is for, its arguments, and its warnings."""
    times = f", up to {step.times} times" if step.times > 1 else ""
    head = f"  {number} {in_line(step.tool, 80)} of {in_line(step.server, 80)}{times}"
    shown: list[Any] = [Text(head, style="bold", overflow="fold")]
    if step.why:
        shown.append(Text(f"    {seen(step.why)}", style="dim", overflow="fold"))
    planned = {name: value for name, value in step.arguments.items() if name not in step.open}
    shown.append(_arguments(planned))
    if step.open:
        names = ", ".join(in_line(name, 60) for name in step.open)
        shown.append(Text(f"    any value: {names}", style="yellow", overflow="fold"))
    shown += [
        Text(f"    ! {seen(each.words)}", style="bold yellow", overflow="fold")
        for each in step.warnings
    ]
    return shown


def details(question: CallQuestion) -> list[Any]:
    """Details of a call: the tool's description, its annotations, and its schema."""
    says = annotation_words(question.annotations)
    believed = "trusted server" if question.trusted else "server not trusted"
    shown: list[Any] = [Text(seen(question.description) or "(no description)", overflow="fold")]
    shown.append(Text(f"Its own description: {says} ({believed}).", style="dim", overflow="fold"))
    shown.append(
        Text("\n".join(["arguments:", *yaml_lines(question.input_schema, 1)]), overflow="fold")
    )
    return [_in(each) for each in shown]


def annotation_words(annotations: ToolAnnotations | None) -> str:
    """A tool's annotations, in words."""
    says = hints(annotations)
    words = []
    if says["read_only"]:
        words.append("only reads")
    elif says["destructive"]:
        words.append("destroys or overwrites")
    else:
        words.append("adds")
    words.append("may be repeated" if says["idempotent"] else "repeating has an effect")
    words.append("uses the network" if says["open_world"] else "no network")
    return ", ".join(words)


def request_lines(
    request: CreateMessageRequestParams, model: str, left: int | None, media: MediaFiles
) -> list[Any]:
    """A sampling request, as lines."""
    facts = [f"model: {in_line(model, 60)}", f"at most {request.max_tokens:,} tokens"]
    if request.temperature is not None:
        facts.append(f"temperature {request.temperature:g}")
    if left is not None:
        facts.append(f"{left} more such requests until its limit")
    shown: list[Any] = [Text("  " + ", ".join(facts), style="dim", overflow="fold")]
    if request.system_prompt:
        shown += [
            Text("  system:", style="dim"),
            _in(Text(seen(request.system_prompt), overflow="fold")),
        ]
    for message in request.messages:
        shown.append(Text(f"  {message.role}:", style="dim"))
        shown += map(_in, blocks(message.content, media))
    if request.tools:
        shown.append(
            Text(
                f"  tools: {', '.join(in_line(tool.name, 60) for tool in request.tools)}",
                style="dim",
                overflow="fold",
            )
        )
    return shown


def address(url: str, host: str, site: str = "") -> Text:
    """A whole address, with the registrable domain of its host highlighted."""
    shown = seen(url)
    end = in_line(site or host, 300)
    text = Text(f"  {shown}\n  It leads to ", overflow="fold")
    text.append(in_line(host, 300).removesuffix(end), style="bold")
    text.append(end, style="bold reverse")
    start = shown.find("//") + 2 if "//" in shown else 0
    authority = re.split(r"[/?#]", shown[start:], maxsplit=1)[0]
    place = authority.casefold().rfind(end.casefold()) if end else -1
    if place >= 0:
        text.stylize("bold underline", 2 + start + place, 2 + start + place + len(end))
    return text


def _pin(question: PinQuestion) -> list[Any]:
    if len(question.changes) == 1:
        (change,) = question.changes
        if change.kind == "skill":
            what = named(change)
            words = f"provides instructions that the model wants to load: the {what} {_how(change)}"
        else:
            words = f"has changed: its {named(change)} {_how(change)}"
        return [_head(question, words), _in(unified(change.was, change.now))]
    counts = Counter(_COUNTED[_how(change)] for change in question.changes)
    listed = ", ".join(f"{count:,} {how}" for how, count in counts.items())
    head = _head(question, f"offers something else, {len(question.changes):,} in all: {listed}")
    return [head, *(_listed(change, at) for at, change in enumerate(question.changes, 1))]


def named(change: FeatureChange) -> str:
    """A feature's kind and name."""
    return f"{_KINDS[change.kind]} {in_line(change.name, 80)}".strip()


def _how(change: FeatureChange) -> str:
    if not change.now:
        return "is gone"
    return "has changed since it was approved" if change.was else "is new"


def _listed(change: FeatureChange, number: int) -> Text:
    """A change as one line of a list, with its warnings."""
    text = Text(f"  {number} {named(change)} {_how(change)}", overflow="fold")
    if change.warnings:
        text.stylize("bold")
    for each in change.warnings:
        text.append(f"\n    ! {seen(each.words)}", style="bold yellow")
    return text


def whole_changes(question: PinQuestion) -> list[Any]:
    """The full text of every change."""
    shown: list[Any] = []
    for change in question.changes:
        shown.append(Text(f"{named(change)} {_how(change)}", style="bold", overflow="fold"))
        shown.append(_in(unified(change.was, change.now)))
    return shown


def unified(was: str, now: str) -> Text:
    """A unified diff."""
    text = Text(overflow="fold")
    before, after = (_lines(each) for each in (was, now))
    for line in difflib.unified_diff(before, after, "approved", "now", lineterm=""):
        if line.startswith("+"):
            style = "green"
        elif line.startswith("-"):
            style = "red"
        else:
            style = "dim"
        text.append(f"{line}\n", style=style)
    text.rstrip()
    return text


def _lines(shown: str) -> list[str]:
    """Split into lines. Line breaks inside a text become lines too, so that nothing hides in a long
    line.
    """
    return seen(shown).replace("\\n", "\\n\n      ").splitlines()


def _start(question: StartQuestion) -> list[Any]:
    words = (
        "would be started with this command"
        if question.runs_code
        else "would be contacted at this address"
    )
    body: list[Any] = [
        _head(question, words),
        _in(Text(seen(question.command), style="bold", overflow="fold")),
    ]
    known = "\n".join(f"  {in_line(fact, 2000)}" for fact in start_facts(question))
    return [*body, Text(known, style="dim", overflow="fold")]


def field_lines(field: FormField, number: int, count: int) -> list[Any]:
    """A form field before it is filled in; choices have numbers."""
    need = "" if field.required else " (optional)"
    lines: list[Any] = [
        Text.assemble(
            (f"  {number}/{count} {in_line(field.title, 120)}", "bold"),
            (need, "dim"),
            overflow="fold",
        )
    ]
    description = remark(field) if not field.options else field.description
    if description:
        lines.append(Text(f"    {seen(description)}", style="dim", overflow="fold"))
    for place, (value, title) in enumerate(field.options, 1):
        named = (
            in_line(title, 200)
            if title == value
            else f"{in_line(title, 200)} [{in_line(value, 80)}]"
        )
        lines.append(Text(f"    {place} {named}", overflow="fold"))
    if field.kind == "choices":
        lines.append(Text("    several values, separated by commas", style="dim"))
    return lines


def filled_lines(
    fields: Sequence[FormField], content: Mapping[str, Any], wrong: Mapping[str, str]
) -> list[Any]:
    """The content of a form as it would be sent, with its errors."""
    lines: list[Any] = [Text("  This would be sent:", style="bold")]
    for number, field in enumerate(fields, 1):
        value = (
            seen(value_text(field, content[field.name])) if field.name in content else "(left out)"
        )
        lines.append(Text(f"  {number} {in_line(field.title, 120)}: {value}", overflow="fold"))
        if field.name in wrong:
            lines.append(
                Text(f"    ! {seen(wrong[field.name])}", style="bold red", overflow="fold")
            )
    return lines
