"""The official schemas as judges of single messages, where they lie beside the repository."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

from interlock.tape import Line

FOLDER = Path(__file__).resolve().parents[5] / "shared" / "spec" / "schema"
AT_HAND = FOLDER.is_dir()
TASKS_EXTENSION = "ext-tasks"
"""The schema of the tasks extension. A message of 2026-07-28 about tasks is judged by it."""

# Definitions that stand for anything, or that describe JSON Schema: objects that hold more than
# their properties.
OPEN = {"Result", "Notification", "Request", "Error", "PaginatedResult"}
OPEN_KINDS = ("Error", "Capabilities", "MetaObject")
NOT_OURS = ("Client", "Server", "JSONRPC")

MAY_BE_TASKS = ("tools/call", "elicitation/create", "sampling/createMessage")
"""The requests that may be answered with a task under 2025-11-25."""


class Judge:
    """Judges the messages of one conversation under one revision; it remembers requests, to know
    what their answers answer."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        self._asked: dict[tuple[str, Any], str] = {}

    def problems(self, line: Line) -> Iterator[str]:
        """What is wrong with a message."""
        message = line.message
        if not isinstance(message, dict):
            yield f"no JSON object: {line}"
            return
        yield from _violations(self.revision, "JSONRPCMessage", message, closed=False)
        other = "server" if line.sender == "client" else "client"
        if "method" in message:
            if "id" in message:
                self._asked[line.sender, message["id"]] = message["method"]
            schema = self._schema_of(message["method"])
            name = _definitions_by_method(schema).get(message["method"])
            if name is None:
                yield f"{self.revision} has no {message['method']}"
            else:
                closed = schema == self.revision  # the extension's schema composes its types
                yield from _violations(schema, name, message, closed=closed)
        elif "result" in message:
            method = self._asked.pop((other, message["id"]), None)
            if method is None:
                yield f"answers a request that was not made: {line}"
                return
            result = message["result"]
            schema = self._schema_of(method, result)
            closed = schema == self.revision
            name = self._result_of(schema, method, result)
            yield from _violations(schema, name, result, closed=closed)
        else:
            self._asked.pop((other, message.get("id")), None)
            yield from self._error(message)

    def _schema_of(self, method: str, result: Any = None) -> str:
        is_handle = isinstance(result, dict) and result.get("resultType") == "task"
        is_extension = self.revision >= "2026" and ("/tasks" in method or method[:6] == "tasks/")
        if is_handle or is_extension:
            return TASKS_EXTENSION
        return self.revision

    def _result_of(self, schema: str, method: str, result: Any) -> str:
        if isinstance(result, dict):
            if result.get("resultType") == "input_required":
                return "InputRequiredResult"
            if result.get("resultType") == "task" or (method in MAY_BE_TASKS and "task" in result):
                return "CreateTaskResult"
            if method == "tasks/result":
                members = {"action": "ElicitResult", "model": "CreateMessageResult"}
                return next((members[m] for m in members if m in result), "CallToolResult")
        name = _definitions_by_method(schema)[method].removesuffix("Request") + "Result"
        return name if name in _schema(schema)[1] else "EmptyResult"

    def _error(self, message: Any) -> Iterator[str]:
        names = {
            -32700: "ParseError",
            -32600: "InvalidRequestError",
            -32601: "MethodNotFoundError",
            -32602: "InvalidParamsError",
            -32603: "InternalError",
            -32020: "HeaderMismatchError",
            -32021: "MissingRequiredClientCapabilityError",
            -32022: "UnsupportedProtocolVersionError",
        }
        definitions = _schema(self.revision)[1]
        code = message.get("error", {}).get("code")
        if (name := names.get(code)) in definitions:
            whole = "error" in definitions[name].get("properties", {})
            yield from _violations(
                self.revision, name, message if whole else message["error"], closed=False
            )
        if self.revision >= "2026" and (code in (-32002, -32042) or -32019 <= code <= -32000):
            yield f"the code {code} is not to be used any more"


@cache
def _schema(revision: str) -> tuple[str, dict[str, Any]]:
    schema = json.loads((FOLDER / f"{revision}.json").read_text(encoding="utf-8"))
    key = "$defs" if "$defs" in schema else "definitions"
    return key, _amended(schema[key])


def _amended(definitions: dict[str, Any]) -> dict[str, Any]:
    """Where schema.json makes `integer` of what schema.ts calls `number`: answers to forms may be
    fractions (`X-05`). The tasks extension adds a key to the listen filter (`TKX-23`)."""
    if "SubscriptionFilter" in definitions:
        keys = {"type": "array", "items": {"type": "string"}}
        definitions["SubscriptionFilter"]["properties"]["taskIds"] = keys
    if "ElicitResult" in definitions:
        text = json.dumps(definitions["ElicitResult"])
        definitions["ElicitResult"] = json.loads(text.replace('"integer"', '"number"'))
    return definitions


@cache
def _definitions_by_method(revision: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, definition in _schema(revision)[1].items():
        for part in (definition, *definition.get("allOf", ())):
            method = part.get("properties", {}).get("method", {}).get("const")
            if method is not None and not name.startswith(NOT_OURS):
                found[method] = name
    found.setdefault("notifications/cancelled", "CancelledNotification")
    return found


@cache
def _validator(revision: str, name: str, closed: bool) -> Any:
    key, definitions = _schema(revision)
    if closed:
        definitions = {n: _closed(n, definition) for n, definition in definitions.items()}
        definitions["EmptyResult"] = {**definitions["Result"], "additionalProperties": False}
    dialect = (
        "http://json-schema.org/draft-07/schema#"
        if key == "definitions"
        else "https://json-schema.org/draft/2020-12/schema"
    )
    return jsonschema_rs.validator_for(
        {"$schema": dialect, "$ref": f"#/{key}/{name}", key: definitions}
    )


def _closed(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    """A definition that takes no member it does not name: what an older revision never said is not
    said to it."""
    if name in OPEN or "properties" not in definition or name.endswith(OPEN_KINDS):
        return definition
    closed = {**definition, "additionalProperties": False}
    if (
        isinstance(params := definition["properties"].get("params"), dict)
        and "properties" in params
    ):
        shut = {
            **params,
            "additionalProperties": False,
            "properties": {"_meta": {}, **params["properties"]},
        }
        closed["properties"] = {**definition["properties"], "params": shut}
    if (
        "method" in definition["properties"]
    ):  # a request as the schema has it may lack what JSON-RPC adds
        closed["properties"] = {"jsonrpc": {}, "id": {}, **closed["properties"]}
    return closed


def _violations(revision: str, name: str, value: Any, *, closed: bool = True) -> Iterator[str]:
    for strict in (False, True) if closed else (False,):
        for error in _validator(revision, name, strict).iter_errors(value):
            path = "/".join(map(str, error.instance_path))
            how = " (closed)" if strict else ""
            yield f"{name}{how} of {revision} at /{path}: {error.message[:300]}"
        if strict:
            return
