"""Saved suites: a recording as a test suite in TOML, for `interlock test`.

Each connection becomes a test, and each call, read, prompt and list of its client a step with the
recorded result. Values that differ in each run become blanks (`${uuid-1}`, `${_}`), which accept
any value and fill it in where the client sent it back. A step that a suite cannot express stays in
the file as a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from .. import types as t
from ..types.base import RequestId
from ..wire.codec import decode, encode
from ..wire.jsonrpc import Malformed
from ..wire.revisions import NEWEST
from .blanking import RECORDED_VOLATILE, RecordedBlanking
from .conversation import Tape

_BLANK = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]*)\}")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_VERSION = "io.modelcontextprotocol/protocolVersion"


class _StepKind(Struct, frozen=True):
    """How a step makes a request.

    Attributes:
        key: The key of the step.
        member: The member of the params that is its value; empty for lists.
        result: The type of the result.
        compared: The members of the result that are compared.
        value: The value of the key for lists.
    """

    key: str
    member: str
    result: type[Any]
    compared: tuple[str, ...]
    value: str = ""


_KINDS: Final = {
    "tools/call": _StepKind("call", "name", t.CallToolResult, ("content", "structuredContent")),
    "resources/read": _StepKind("read", "uri", t.ReadResourceResult, ("contents",)),
    "prompts/get": _StepKind("prompt", "name", t.GetPromptResult, ("messages",)),
    "tools/list": _StepKind("list", "", t.ListToolsResult, ("tools",), "tools"),
    "prompts/list": _StepKind("list", "", t.ListPromptsResult, ("prompts",), "prompts"),
    "resources/list": _StepKind("list", "", t.ListResourcesResult, ("resources",), "resources"),
    "resources/templates/list": _StepKind(
        "list",
        "",
        t.ListResourceTemplatesResult,
        ("resourceTemplates",),
        "resource_templates",
    ),
}


class _Step(Struct):
    """A request of the recorded client with its outcome.

    Attributes:
        questions: The texts of its open questions, by their keys in `inputRequests`.
        problem: Why a suite cannot express it; empty if it can.
    """

    kind: _StepKind
    value: str
    arguments: dict[str, Any]
    answers: dict[str, Any] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    outcome: dict[str, Any] | None = None
    problem: str = ""


def suite_text(
    conversations: Mapping[str, Tape],
    *,
    target: str = "",
    remark: str = "",
    volatile: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> str:
    """Return a suite that repeats what the clients of a recording did, and compares the results.

    Args:
        conversations: The messages of each connection, by the name of its test. Connections under
            another revision than the first one are left out, with a comment.
        target: The server that the suite names; empty if the command of the run gives it.
        remark: A comment for the head of the file.
        volatile: More members whose values differ in each run.
        ignore: Paths that are not compared, such as `/result/structuredContent/took`.
    """
    revisions = {name: _revision_of(tape) for name, tape in conversations.items()}
    revision = next(iter(revisions.values()), NEWEST)
    lines = [f"# {line}" for line in remark.splitlines()]
    lines += [f"target = {_toml(target)}"] if target else []
    lines.append(f"revisions = [{_toml(revision)}]")
    for name, tape in conversations.items():
        if revisions[name] != revision:
            lines += [
                "",
                f"# {_one_line(name)} is left out: it has the revision {revisions[name]}.",
            ]
            continue
        steps = _StepReader(volatile).read(tape)
        written = list(_written(steps, [path.removeprefix("/result") for path in ignore]))
        if not any(line.startswith("[[") for line in written):
            lines += ["", f"# {_one_line(name)} has no steps.", *written]
            continue
        lines += ["", "[[test]]", f"name = {_toml(name)}", *written]
    return "\n".join([*lines, ""])


def _revision_of(tape: Tape) -> str:
    """The revision that a connection agreed on, or that its requests name."""
    for message in _messages(tape.lines):
        result = _object(message.get("result"))
        if isinstance(version := result.get("protocolVersion"), str):
            return version
        meta = _object(_object(message.get("params")).get("_meta"))
        if isinstance(version := meta.get(_VERSION), str):
            return version
    return NEWEST


def _messages(lines: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The messages of some lines; those of a batch one by one."""
    for line in lines:
        message = line.message
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict):
                yield each


class _StepReader:
    """Collects the steps of one connection."""

    def __init__(self, volatile: Sequence[str]) -> None:
        self._blanking = RecordedBlanking((*RECORDED_VOLATILE, *volatile))
        self._steps: list[_Step] = []
        self._open: dict[RequestId, _Step] = {}
        self._suspended: list[_Step] = []  # input_required: another request continues the step
        self._questions: dict[RequestId, tuple[_Step, str]] = {}

    def read(self, tape: Tape) -> list[_Step]:
        """Return the steps of a conversation that have an outcome."""
        for line in tape.lines:
            blanked = msgspec.structs.replace(line, frame=self._blanking.frame(line))
            for message in _messages([blanked]):
                if line.sender == "client":
                    self._sent(message)
                else:
                    self._received(message)
        return [step for step in self._steps if step.outcome is not None]

    def _sent(self, message: dict[str, Any]) -> None:
        id = message.get("id")
        method = message.get("method")
        if not isinstance(id, int | str):
            return
        if method is None:
            step, words = self._questions.pop(id, (None, ""))
            if step is not None:
                _answer(step, words, _object(message.get("result")))
            return
        kind = _KINDS.get(method)
        params = _object(message.get("params"))
        if kind is None or params.get("cursor"):
            return
        value = kind.value or str(params.get(kind.member, ""))
        step = self._continued(kind, value) if "inputResponses" in params else None
        if step is None:
            step = _Step(kind, value, _object(params.get("arguments")))
            self._steps.append(step)
        for key, response in _object(params.get("inputResponses")).items():
            if key in step.questions:
                _answer(step, step.questions.pop(key), _object(response))
        self._open[id] = step

    def _continued(self, kind: _StepKind, value: str) -> _Step | None:
        """The suspended step that a request with answers continues."""
        for step in self._suspended:
            if step.kind is kind and step.value == value:
                self._suspended.remove(step)
                return step
        return None

    def _received(self, message: dict[str, Any]) -> None:
        id = message.get("id")
        if not isinstance(id, int | str):
            return
        if isinstance(method := message.get("method"), str):
            self._asked(id, method, _object(message.get("params")))
            return
        step = self._open.pop(id, None)
        if step is None:
            return
        result = _object(message.get("result"))
        if result.get("resultType") == "input_required":
            for key, request in _object(result.get("inputRequests")).items():
                self._note(step, key, _object(request))
            self._suspended.append(step)
        elif result.get("resultType") == "task" or "task" in result:
            step.outcome = {}
            step.problem = "it became a task"
        else:
            step.outcome = message

    def _asked(self, id: RequestId, method: str, params: dict[str, Any]) -> None:
        """A question of the server by a request of its own, for the last request that is open."""
        step = next(reversed(self._open.values()), None)
        if step is None or method == "ping":
            return
        if method != "elicitation/create":
            step.problem = f"the server asks by {method}"
            return
        self._questions[id] = (step, str(params.get("message", "")))

    def _note(self, step: _Step, key: str, request: dict[str, Any]) -> None:
        if request.get("method") != "elicitation/create":
            step.problem = f"the server asks by {request.get('method')}"
            return
        step.questions[key] = str(_object(request.get("params")).get("message", ""))


def _answer(step: _Step, words: str, answer: dict[str, Any]) -> None:
    """Add the answer to a question, by the part of its text that is the same in each run."""
    part = max(_BLANK.split(words)[::2], key=len)
    action = answer.get("action")
    if action == "accept":
        step.answers[part] = _object(answer.get("content")) or True
    elif action == "decline":
        step.answers[part] = False
    else:
        step.problem = "its question was dismissed"


# -- writing ---------------------------------------------------------------------------------------


def _written(steps: Sequence[_Step], ignored: Sequence[str]) -> Iterator[str]:
    """The lines of the steps."""
    known: set[str] = set()  # the blanks that earlier steps fill
    for step in steps:
        outcome = step.outcome or {}
        expected = [] if step.problem else list(_expected(step, outcome, ignored))
        unknown = _blanks([step.value, step.arguments]) - known
        if step.kind.key != "call" and step.kind.key != "prompt":
            unknown |= _blanks(step.value)
        yield ""
        if step.problem or unknown or _has_null(step.answers):
            why = step.problem or "it sends a value that no recorded result has"
            yield f"# Left out: {step.kind.key} {_one_line(step.value)}, because {why}."
            continue
        known |= _blanks([value for _, value in expected])
        yield "[[test.step]]"
        yield f"{step.kind.key} = {_toml(step.value)}"
        if step.arguments:
            yield f"arguments = {_toml(_arguments(step.arguments))}"
        if step.answers:
            yield f"answers = {_toml(step.answers)}"
        if "error" in outcome:
            yield f"expect.error = {_object(outcome['error']).get('code', 0)}"
            continue
        if _object(outcome.get("result")).get("isError") is True:
            yield 'expect.error = "tool"'
        if expected:
            yield f"expect.equal = {_toml(dict(expected))}"


def _expected(
    step: _Step, outcome: dict[str, Any], ignored: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    """The values of the result to compare, by their paths, in the form of the newest revision."""
    if "error" in outcome:
        return
    try:
        result = msgspec.json.decode(
            encode(decode(msgspec.json.encode(outcome.get("result")), step.kind.result))
        )
    except Malformed:
        step.problem = "its result is not valid"
        return
    for member in step.kind.compared:
        if member not in result:
            continue
        value = result[member]
        if step.kind.key == "list":  # `interlock diff` compares the rest of a feature
            names = ("name", "uri", "uriTemplate")
            yield from (
                (f"/{number}/{name}", item[name])
                for number, item in enumerate(value)
                for name in names
                if name in item
            )
        else:
            yield from _without_null(f"/{member}", _without(f"/{member}", value, ignored))


def _without(path: str, value: Any, ignored: Sequence[str]) -> Any:
    """A value with blanks at the paths that are not compared."""
    if path in ignored:
        return "${_}"
    if isinstance(value, dict):
        return {key: _without(f"{path}/{key}", part, ignored) for key, part in value.items()}
    if isinstance(value, list):
        return [_without(f"{path}/{n}", part, ignored) for n, part in enumerate(value)]
    return value


def _without_null(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A value by its path; one with null, which TOML does not have, by the paths of its parts."""
    if not _has_null(value):
        yield path, value
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value or ())
    for key, part in parts:
        name = str(key).replace("~", "~0").replace("/", "~1")
        yield from _without_null(f"{path}/{name}", part)


def _arguments(arguments: dict[str, Any]) -> Any:
    """Arguments for a step: those with null as a text of JSON."""
    return json.dumps(arguments, ensure_ascii=False) if _has_null(arguments) else arguments


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


def _blanks(value: Any) -> set[str]:
    """The names of the blanks in a JSON value, without `_`."""
    return set(_BLANK.findall(json.dumps(value, ensure_ascii=False))) - {"_"}


def _toml(value: Any) -> str:
    """A JSON value without null as an inline value of TOML."""
    if isinstance(value, dict):
        members = ", ".join(f"{_key(key)} = {_toml(part)}" for key, part in value.items())
        return f"{{ {members} }}" if members else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    # JSON text is TOML too, but for a control character that JSON does not escape.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml(key)


def _one_line(text: str) -> str:
    """Text for a comment."""
    return _toml(text)[1:-1]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
