"""Texts of our own with every message that tutorials print: accepted and answered as printed, in a
repository that stands alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.seeds import fragments
from tests.seeds.literals import NoLiteral, literals, read
from tests.seeds.play import play
from tests.seeds.printed import Printed, as_specified, kind_of, printed, sessions

TEXTS = {
    path.stem: printed(path) for path in sorted((Path(__file__).parent / "texts").glob("*.txt"))
}
SESSIONS = [
    pytest.param(session, id=session[0].where)
    for items in TEXTS.values()
    for session in sessions(items)
]
FRAGMENTS = [
    pytest.param(items, number, id=f"{item.where} {item.kind}")
    for items in TEXTS.values()
    for number, item in enumerate(items)
    if item.kind != "message"
]


@pytest.mark.parametrize("session", SESSIONS)
async def test_every_conversation_goes_as_printed(session: list[Printed]) -> None:
    """Requests, answers and notifications of both sides (`LIF-01`, `TOL-02`, `RES-06`, `PRM-02`,
    `SAM-01`, `ROO-01`)."""
    requests = [item.value for item in session if "method" in item.value]
    answered = {item.value["id"] for item in session if "result" in item.value}
    assert await play(session) == sum(
        1 for request in requests if request.get("id") in answered or "id" not in request
    )


@pytest.mark.parametrize("items, number", FRAGMENTS)
async def test_every_part_works_where_it_belongs(items: list[Printed], number: int) -> None:
    """Tools, templates, prompts, roots, sampling, elicitation, configuration: put to work,
    and out as they went in."""
    await fragments.check(items, number)


@pytest.mark.parametrize("path, value", [("tools", "renamed"), ("content", [])])
async def test_another_answer_is_noticed(path: str, value: object) -> None:
    """The comparison can fail: a printed answer that the server does not give."""
    session = sessions(TEXTS["lifecycle"])[0]
    number = next(n for n, item in enumerate(session) if path in item.value.get("result", {}))
    changed = list(session)
    printed_result = dict(session[number].value["result"])
    if path == "tools":  # the first answer builds the server, the second one is compared with it
        changed += [
            Printed("message", {"jsonrpc": "2.0", "id": 99, "method": "ping"}, "here"),
            Printed("message", {"jsonrpc": "2.0", "id": 99, "result": {"tools": value}}, "here"),
        ]
    else:
        changed[number] = session[number]._replace(
            value={"jsonrpc": "2.0", "id": 3, "result": {**printed_result, "isError": "no"}}
        )
    with pytest.raises((AssertionError, ValueError)):
        await play(changed)


@pytest.mark.parametrize(
    "text, value",
    [
        ('{"a": [1, -2.5, 1e3, true, null]}', {"a": [1, -2.5, 1000.0, True, None]}),
        (
            "{ a: 'it\\'s', // why\n 'b-c': \"\\u00e9\\n\", /* and\nso on */ }",
            {"a": "it's", "b-c": "é\n"},
        ),
        ('{ text: "one " + // and\n "two" }', {"text": "one two"}),
        ("{}", {}),
    ],
)
def test_literals_are_read(text: str, value: object) -> None:
    """JSON, comments, names without quotes, commas at the end, strings in pieces."""
    assert read(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "{ uri: string; }",
        "{ a: f(1) }",
        '{ "a": ... }',
        '{"a" 1}',
        "{ a, b }",
        '{"a": 1',
        "{ a: `x` }",
        '{"a": 1} 2',
    ],
)
def test_what_is_no_literal(text: str) -> None:
    """Types, calls, and texts that are cut short are no values."""
    with pytest.raises(NoLiteral):
        read(text)


def test_literals_are_found_in_a_text() -> None:
    """The outermost ones, with their lines; those within what is no literal too."""
    text = 'A text {not one}.\n{"a": {"b": 1}}\nf({ x: y, z: { "c": 2 } })'
    assert [(found.line, found.value) for found in literals(text)] == [
        (2, {"a": {"b": 1}}),
        (3, {"c": 2}),
    ]


@pytest.mark.parametrize(
    "name, meant",
    [
        ("sampling/complete", "sampling/createMessage"),
        ("sampling/create", "sampling/createMessage"),
        ("elicitation/request", "elicitation/create"),
        ("elicitation/requestInput", "elicitation/create"),
        ("tools/call", "tools/call"),
    ],
)
def test_the_specification_wins(name: str, meant: str) -> None:
    """Names that tutorials have and the specification has not."""
    params = {"messages": [{"role": "user", "content": "Hello"}], "schema": {"type": "object"}}
    made = as_specified({"method": name, "params": params})
    assert made["method"] == meant
    if meant == "elicitation/create":
        assert made["params"]["requestedSchema"] == {"type": "object"}
    if meant == "sampling/createMessage":
        assert made["params"]["messages"][0]["content"] == {"type": "text", "text": "Hello"}


def test_nothing_is_taken_for_what_it_is_not() -> None:
    """An object of no known kind is an error, so that nothing is passed over in silence."""
    with pytest.raises(ValueError, match="no knowing"):
        kind_of({"colour": "green"})
