"""Where the official schemas and their examples lie beside the repository: the facts are still
theirs, and the codec speaks as they do."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from msgspec import UNSET

from interlock import types as t
from interlock.wire import codec, jsonrpc
from interlock.wire.revisions import METHODS, NEWEST, REVISIONS
from scripts import schema_facts
from tests.history import allowances
from tests.history.histories import our_type
from tests.history.samples import full

HERE = Path(__file__).parent
SPEC = HERE.parents[4] / "shared" / "spec"
EXAMPLES = sorted((SPEC / f"examples-{NEWEST}").glob("*/*.json"))

if not SPEC.is_dir():
    pytest.skip(
        "the official schemas are not beside this repository (../shared/spec)",
        allow_module_level=True,
    )


def test_the_facts_are_those_of_the_schemas():
    """The committed facts are what the script makes of the schemas today."""
    now = schema_facts.written(schema_facts.read(SPEC / "schema"))
    assert now == (HERE / "facts.json").read_text(encoding="utf-8"), (
        "run scripts/schema_facts.py again, then test_history"
    )


def test_other_schemas_give_other_facts(tmp_path):
    """The comparison above can fail: one word of one schema changed is one line of the facts
    changed."""
    for revision in REVISIONS:
        text = (SPEC / "schema" / f"{revision}.json").read_text(encoding="utf-8")
        (tmp_path / f"{revision}.json").write_text(
            text.replace('"websiteUrl"', '"homepage"'), encoding="utf-8"
        )
    now = schema_facts.written(schema_facts.read(tmp_path))
    committed = (HERE / "facts.json").read_text(encoding="utf-8")
    changed = {
        line.split(":")[0].strip() for line in set(now.splitlines()) ^ set(committed.splitlines())
    }
    assert changed == {'"Implementation"'}


# -- the official examples

PLAIN_JSON = {
    "BooleanSchema",
    "NumberSchema",
    "StringSchema",
    "TitledMultiSelectEnumSchema",
    "TitledSingleSelectEnumSchema",
    "UntitledMultiSelectEnumSchema",
    "UntitledSingleSelectEnumSchema",
}
"""The fields of forms: JSON Schema to us, so they are shown to pass unchanged through the form that
holds them."""

HELD_BY: dict[str, tuple[type[Any], str]] = {
    "InputRequests": (t.InputRequiredResult, '{"inputRequests":%s}'),
    "InputResponses": (t.CallToolRequestParams, '{"name":"x","inputResponses":%s}'),
    **{
        name: (
            t.ElicitRequestParams,
            '{"message":"x","requestedSchema":{"type":"object","properties":{"x":%s}}}',
        )
        for name in PLAIN_JSON
    },
}
"""Types that are no type of ours by themselves: the type and the JSON that hold them."""

KINDS = {"PaginatedRequestParams": t.PaginatedParams}
ERROR_BODIES = {"InternalError", "InvalidParamsError", "MethodNotFoundError", "ParseError"}


# One example says what its schema has not.
STRAY = {"ListRootsRequest": "id"}


def again(name: str, text: str) -> tuple[Any, Any]:
    """An example read as our type and written for the newest revision, and the example."""
    if name in HELD_BY:
        kind, around = HELD_BY[name]
        return encoded(kind, around % text), json.loads(around % text)
    kind = KINDS.get(name) or allowances.CALLED.get(name) or our_type(name)
    if name in ERROR_BODIES:
        return enveloped(name, f'{{"jsonrpc":"2.0","id":1,"error":{text}}}')["error"], json.loads(
            text
        )
    return encoded(kind, text) if kind else enveloped(name, text), json.loads(text)


def encoded(kind: type[Any], text: str) -> Any:
    return json.loads(codec.encode(codec.decode(text.encode(), kind)))


def enveloped(name: str, text: str) -> Any:
    """A whole message: its envelope and what is in it, read and written again."""
    envelope = jsonrpc.open_envelope(text.encode())
    if envelope.error is not UNSET:
        return json.loads(
            jsonrpc.failure(
                envelope.id, envelope.error.code, envelope.error.message, envelope.error.data
            )
        )
    if envelope.result is not UNSET:
        kind = our_type(name.removesuffix("Response"))
        return json.loads(
            jsonrpc.response(envelope.id, codec.encode(codec.decode(envelope.result, kind)))
        )
    params = codec.encode(codec.decode(envelope.params, METHODS[envelope.method].params))
    if name.endswith("Notification"):
        return json.loads(jsonrpc.notification(envelope.method, params))
    return json.loads(jsonrpc.request(envelope.id, envelope.method, params))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_an_official_example_comes_back_unchanged(path):
    """Each of the specification's examples is read as its type and written with the same JSON
    value.

    `isError: false` is what the schema assumes where it is not set, and is left out.
    """
    name = path.parent.name
    after, before = again(name, path.read_text(encoding="utf-8"))
    before.pop(STRAY.get(name), None)
    assert without_the_default(after) == without_the_default(before)


def without_the_default(value):
    """The same JSON value without `isError: false`, at any depth."""
    if isinstance(value, list):
        return [without_the_default(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_the_default(item)
        for name, item in value.items()
        if (name, item) != ("isError", False)
    }


def test_there_are_examples():
    """An empty folder would pass the test above."""
    assert len(EXAMPLES) > 100


# -- what the codec writes, under the schema of each revision


TURNS = 6
"""As many alternatives as a union has at the most, here."""


class Judge:
    """Holds messages against the definitions of one revision's schema."""

    def __init__(self, revision: str) -> None:
        self.schema = json.loads((SPEC / "schema" / f"{revision}.json").read_text(encoding="utf-8"))
        self.home = "$defs" if "$defs" in self.schema else "definitions"
        self.messages = {
            properties["method"]["const"]: name
            for name, definition in self.schema[self.home].items()
            if "const" in (properties := definition.get("properties", {})).get("method", {})
            and not name.startswith("Client")
        }

    def faults(self, definition: str, message: bytes) -> list[str]:
        """What the schema finds wrong with a message."""
        schema = {
            "$schema": self.schema["$schema"],
            self.home: self.schema[self.home],
            "allOf": [{"$ref": f"#/{self.home}/{definition}"}],
        }
        return [
            fault.message
            for fault in jsonschema_rs.validator_for(schema).iter_errors(json.loads(message))
        ]


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_message_is_valid_under_the_schema_of_its_revision(revision):
    """Requests, notifications and results with every field filled in, with content that the
    revision knows and such that it does not, encoded for a revision, pass that revision's own
    schema."""
    judge = Judge(revision)
    spoken = [
        (method, row) for method, row in METHODS.items() if row.since <= revision <= row.until
    ]
    for (method, row), turn in product(spoken, range(TURNS)):
        params = codec.encode(full(row.params, revision, turn), revision)
        message = (
            jsonrpc.request(1, method, params)
            if row.result
            else jsonrpc.notification(method, params)
        )
        assert not judge.faults(judge.messages[method], message), (
            f"{method} in {revision}: {message!r}"
        )
        if row.result:
            answer = codec.encode(full(row.result, revision, turn), revision)
            assert not judge.faults(row.result.__name__, answer), (
                f"the answer to {method} in {revision}: {answer!r}"
            )


def test_questions_are_valid_under_the_newest_schema():
    """A result that asks, with each kind of question (`MRT-02`, `MRT-03`)."""
    for turn in range(TURNS):
        asking = codec.encode(full(t.InputRequiredResult, NEWEST, turn))
        assert not Judge(NEWEST).faults("InputRequiredResult", asking), asking


def test_a_message_of_another_revision_is_found_at_fault():
    """The judge above does condemn: the newest revision demands what an older one does not say."""
    older = codec.encode(full(t.ListToolsResult, REVISIONS[0]), REVISIONS[0])
    assert any("ttlMs" in fault for fault in Judge(NEWEST).faults("ListToolsResult", older))
