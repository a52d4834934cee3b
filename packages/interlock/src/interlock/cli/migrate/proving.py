"""Proves a migration: starts the old and the new server, and compares catalogues and answers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from ... import Client, InterlockError, Stdio
from ... import types as t
from ...schema import compile
from ...tape import Tape
from ...testing import compare_catalogues, take_catalogue
from ...testing.drift import Catalogue
from ...types.content import ContentType

SECONDS: Final = 30.0
"""The time limit for the start of a server, and for each answer."""

_MOST = 50  # requests of each kind
_REPLAYED: Final = ("tools/call", "resources/read", "prompts/get")
_OLD: Final = Path(__file__).with_name("old_server.py")


class Proof(Struct, frozen=True):
    """What a comparison of two servers found.

    Attributes:
        features: The number of features of the old server.
        answers: The number of answers that were compared.
        differences: What breaks callers, or is another answer; one line each.
        harmless: What differs and breaks nobody; one line each.
    """

    features: int
    answers: int
    differences: list[str]
    harmless: list[str]


class CannotProve(Exception):
    """A server does not start, or nobody knows how to start it."""


def copy_with(root: Path, changed: Mapping[Path, str], target: Path) -> None:
    """Lay a project out in another folder, with some files changed. Unchanged files are links.

    Args:
        root: The project, or the folder of a file.
        changed: New texts by path.
        target: An empty folder.
    """
    for folder, names, files in os.walk(root):
        names[:] = [
            name
            for name in names
            if not name.startswith((".", "venv")) and name not in ("node_modules", "__pycache__")
        ]
        here = target / Path(folder).relative_to(root)
        here.mkdir(parents=True, exist_ok=True)
        for name in files:
            path = Path(folder, name)
            if path in changed:
                (here / name).write_bytes(changed[path].encode())
            else:
                (here / name).symlink_to(path.resolve())


def old_command(python: str, file: Path, name: str) -> list[str]:
    """Return the command that starts the old server."""
    return [python, str(_OLD), str(file), name]


def new_command(file: Path, name: str) -> list[str]:
    """Return the command that starts the new server."""
    return [sys.executable, "-m", "interlock", "run", f"{file}:{name}" if name else str(file)]


def has_package(python: str, package: str) -> bool:
    """Whether a Python has a package."""
    if shutil.which(python) is None:
        return False
    code = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
    try:
        return subprocess.run([python, "-c", code], capture_output=True).returncode == 0
    except OSError:
        return False


def prove(
    old: Sequence[str],
    new: Sequence[str],
    *,
    tape: Tape | None = None,
    calls: bool = False,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Proof:
    """Compare two servers.

    Args:
        old: The command of the old server.
        new: The command of the new server.
        tape: A recorded conversation with the old server. Without one, a conversation is recorded:
            it reads resources and gets prompts that take no arguments, and calls tools that are
            marked as read-only.
        calls: Whether the recorded conversation calls every tool, with arguments made up from its
            schema. Hazard: the tools then do what they do.
        env: Environment variables for both servers, besides those of this process.
        cwd: The working folder of both servers.

    Raises:
        CannotProve: A server does not start.
    """
    return asyncio.run(_prove(old, new, tape, calls, {**os.environ, **(env or {})}, cwd))


async def _prove(
    old: Sequence[str],
    new: Sequence[str],
    tape: Tape | None,
    calls: bool,
    env: Mapping[str, str],
    cwd: Path | None,
) -> Proof:
    recorded = Tape() if tape is None else tape
    try:
        async with _client(old, env, cwd, Tape() if tape is not None else recorded) as client:
            before = await take_catalogue(client)
            if tape is None:
                await _converse(client, calls)
    except (InterlockError, TimeoutError, OSError) as bad:
        raise CannotProve(f"The old server does not start: {bad}") from None
    try:
        async with _client(new, env, cwd, None) as client:
            after = await take_catalogue(client)
            answers, different = await _replay(recorded, client)
    except (InterlockError, TimeoutError, OSError) as bad:
        raise CannotProve(f"The new server does not start: {bad}") from None
    strict = _rejecting(before, after)
    drift = compare_catalogues(_comparable(before, after), _lenient(after, strict))
    rejects = (
        [f"{len(strict)} tools now reject arguments that their schema does not name"]
        if strict
        else []
    )
    return Proof(
        features=sum(len(features) for features in before.values()),
        answers=answers,
        differences=[*drift.breaking, *different],
        harmless=[*rejects, *drift.compatible],
    )


def _client(
    command: Sequence[str], env: Mapping[str, str], cwd: Path | None, tape: Tape | None
) -> Client:
    tap = tape.record if tape is not None else None
    return Client(
        Stdio(command, env=dict(env), cwd=cwd, tap=tap),
        answers=None,
        revision=None,
        timeout=SECONDS,
    )


def _comparable(before: Catalogue, after: Catalogue) -> Catalogue:
    """The old catalogue without what Interlock leaves out on purpose: the schema of a text."""
    tools = {}
    for name, tool in before.get("tools", {}).items():
        schema = tool.get("outputSchema")
        if (
            schema is not None
            and (_is_text(schema) or _is_block(schema))
            and "outputSchema" not in after.get("tools", {}).get(name, {})
        ):
            tool = {key: value for key, value in tool.items() if key != "outputSchema"}
        tools[name] = tool
    return {**before, "tools": tools}


def _rejecting(before: Catalogue, after: Catalogue) -> set[str]:
    """The tools that ignored unknown arguments before, and reject them now, as all tools do."""
    return {
        name
        for name, tool in after.get("tools", {}).items()
        if b'"additionalProperties":false' in msgspec.json.encode(tool["inputSchema"])
        and b'"additionalProperties":false'
        not in msgspec.json.encode(before.get("tools", {}).get(name, {}))
    }


def _lenient(after: Catalogue, names: set[str]) -> Catalogue:
    """A catalogue without that rejection."""
    tools = {
        name: {**tool, "inputSchema": _open(tool["inputSchema"])} if name in names else tool
        for name, tool in after.get("tools", {}).items()
    }
    return {**after, "tools": tools}


def _open(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _open(value)
            for key, value in schema.items()
            if key != "additionalProperties" or value is not False
        }
    if isinstance(schema, list):
        return [_open(one) for one in schema]
    return schema


def _is_text(schema: Mapping[str, Any]) -> bool:
    """Whether a schema describes a text, or an object of which it says nothing."""
    properties = schema.get("properties", {})
    if schema.get("type") == "object" and not properties:
        return schema.get("additionalProperties", True) is True
    return list(properties) == ["result"] and properties["result"].get("type") == "string"


def _is_block(schema: Mapping[str, Any]) -> bool:
    """Whether a schema describes content blocks, which are content here and have no schema."""
    kind = schema.get("properties", {}).get("type", {})
    return kind.get("const", kind.get("default")) in get_args(ContentType)


# -- the conversation ------------------------------------------------------------------------------


async def _converse(client: Client, calls: bool) -> None:
    """Read, get and call what has no side effects, so that the tape has the answers."""
    for resource in (await _listed(client.list_resources))[:_MOST]:
        await _quietly(client.read_resource(str(resource.uri)))
    for prompt in (await _listed(client.list_prompts))[:_MOST]:
        given = {one.name: "text" for one in prompt.arguments or () if one.required}
        await _quietly(client.get_prompt(prompt.name, given))
    for tool in (await _listed(client.list_tools))[:_MOST]:
        reads = tool.annotations is not None and tool.annotations.read_only_hint
        arguments = sample(tool.input_schema)
        if (calls or reads) and compile(tool.input_schema).is_valid(arguments):
            await _quietly(client.call_tool(tool.name, arguments))


async def _listed(ask: Any) -> list[Any]:
    try:
        found: list[Any] = await ask()
    except t.McpError:
        return []
    return found


async def _quietly(request: Any) -> None:
    """Make a request. Its answer is on the tape, even if it is an error."""
    with contextlib.suppress(t.McpError, t.ProtocolError):
        await request


def sample(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """Return a value that fits a JSON Schema: the default, an example, or the simplest value."""
    root = schema if root is None else root
    if not isinstance(schema, Mapping) or depth > 8:
        return {}
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        definitions = root.get("$defs") or root.get("definitions") or {}
        return sample(definitions.get(name, {}), root, depth + 1)
    for key in ("default", "const"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key) and "properties" in schema:
            choice = schema[key][0]
            required = [*schema.get("required", ()), *choice.get("required", ())]
            rest = {name: value for name, value in schema.items() if name != key}
            return sample({**rest, "required": required}, root, depth + 1)
        if schema.get(key):
            return sample(schema[key][0], root, depth + 1)
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: sample(properties.get(name, {}), root, depth + 1)
            for name in schema.get("required", ())
        }
    if kind == "array":
        few = max(1, int(schema.get("minItems", 1)))
        return [sample(schema.get("items", {"type": "string"}), root, depth + 1)] * few
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return max(1, low) if "maximum" not in schema else min(max(1, low), schema["maximum"])
    if kind == "boolean":
        return True
    return "text"[: schema.get("maxLength", 4)].ljust(schema.get("minLength", 0), "x")


# -- the replay ------------------------------------------------------------------------------------


async def _replay(tape: Tape, client: Client) -> tuple[int, list[str]]:
    """Make the requests of a tape again; return the number of answers and the differences."""
    different = []
    count = 0
    for method, params, answer in _exchanges(tape):
        name = str(params.get("name") or params.get("uri"))
        count += 1
        found = await _answer(client, method, params)
        why = _difference(answer, found)
        if why:
            different.append(f"{method} {name}: {why}")
    return count, different


def _exchanges(tape: Tape) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The requests of the client that name a feature, each with its answer."""
    asked: dict[Any, tuple[str, dict[str, Any]]] = {}
    for line in tape:
        message = line.message
        if not isinstance(message, dict):
            continue
        if line.sender == "client" and message.get("method") in _REPLAYED:
            asked[message.get("id")] = (message["method"], message.get("params", {}))
        elif line.sender == "server" and message.get("id") in asked and "method" not in message:
            method, params = asked.pop(message["id"])
            yield method, params, message


async def _answer(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """The answer of the new server in the form of a JSON-RPC response."""
    try:
        made: Any
        if method == "tools/call":
            made = await client.call_tool(params["name"], params.get("arguments"))
        elif method == "resources/read":
            made = await client.read_resource(params["uri"])
        else:
            made = await client.get_prompt(params["name"], params.get("arguments"))
    except t.McpError as bad:
        return {"error": {"code": bad.code, "message": bad.message}}
    except t.InterlockError as bad:
        return {"error": {"code": 0, "message": str(bad)}}
    whole: dict[str, Any] = msgspec.to_builtins(made)
    return {"result": whole}


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Why two answers differ; empty if they say the same."""
    failed = _failed(old)
    if failed != _failed(new):
        if failed:
            return f"it failed before, and does not now: {_words(old)}"
        return f"it fails now: {_words(new)}"
    if failed:
        return ""  # the words of errors are each SDK's own
    mine = old["result"]
    theirs = new["result"]
    for key in ("content", "contents", "messages"):
        if [_plain(one) for one in mine.get(key) or ()] != [
            _plain(one) for one in theirs.get(key) or ()
        ] and not _same_data(mine, theirs):
            return f"another {key}: {_short(theirs.get(key))} in place of {_short(mine.get(key))}"
    given = mine.get("structuredContent")
    gives = theirs.get("structuredContent")
    if given is not None and gives is not None and given != gives:
        return f"other structured content: {_short(gives)} in place of {_short(given)}"
    return ""


def _same_data(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether the structured content is the same: the text is then only another spelling of it."""
    given = old.get("structuredContent")
    return given is not None and given == new.get("structuredContent")


def _failed(answer: dict[str, Any]) -> bool:
    return "error" in answer or bool(answer["result"].get("isError"))


def _words(answer: dict[str, Any]) -> str:
    if "error" in answer:
        return str(answer["error"].get("message", ""))[:200]
    return _short(answer["result"].get("content"))


def _plain(block: Any) -> Any:
    """A block without what may differ: JSON is compared as data, MIME types of texts are not."""
    if isinstance(block, dict):
        kept = {
            key: _plain(value)
            for key, value in block.items()
            if value is not None and key not in ("annotations", "_meta", "mimeType")
        }
        if "uri" in kept:
            kept["uri"] = str(kept["uri"]).rstrip("/")
        return kept
    if isinstance(block, str):
        try:
            return ["json", msgspec.json.decode(block)] if block[:1] in "[{" else block
        except msgspec.DecodeError:
            return block
    return block


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 160 else f"{text[:157]}..."
