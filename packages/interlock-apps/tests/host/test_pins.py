"""Pins: what was approved is kept, what differs is found and shown, and no file is ever lost."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import Icon, Prompt, PromptArgument, Tool, ToolAnnotations
from interlock_apps.fleet.pins import (
    BadPins,
    PinDifference,
    Pins,
    ServerFeatures,
    digest_of,
    unified,
)

SCHEMA = {
    "type": "object",
    "properties": {"b": {"type": "number", "maximum": 5}, "a": {"type": "string"}},
    "required": ["b", "a"],
}


def tool(**changed: Any) -> Tool:
    return Tool(**{"name": "add", "description": "Adds.", "input_schema": SCHEMA, **changed})


@pytest.mark.parametrize(
    "same",
    [
        tool(input_schema=dict(reversed(SCHEMA.items()))),
        tool(input_schema={**SCHEMA, "required": ["a", "b"]}),
        tool(
            input_schema={
                **SCHEMA,
                "properties": {"a": {"type": "string"}, "b": {"maximum": 5.0, "type": "number"}},
            }
        ),
        tool(icons=[Icon(src="https://example.com/x.png")]),
        tool(meta={"example.com/served": "2026-11-21"}),
        tool(annotations=None),
    ],
)
def test_what_nobody_reads_is_no_difference(same: Tool) -> None:
    """HST-03: the order of keys, pictures and private remarks do not make a tool another."""
    assert digest_of(same) == digest_of(tool())


CHANGES = [
    tool(description="Adds. "),
    tool(description="Adds.\u200b"),
    tool(description=None),
    tool(title="Add"),
    tool(annotations=ToolAnnotations(read_only_hint=True)),
    tool(annotations=ToolAnnotations(title="Add")),
    tool(output_schema={"type": "object"}),
    tool(input_schema={**SCHEMA, "required": ["a"]}),
    tool(
        input_schema={
            **SCHEMA,
            "properties": {**SCHEMA["properties"], "sidenote": {"type": "string"}},
        }
    ),  # type: ignore[dict-item] # it is a dict
    tool(meta={"ui": {"resourceUri": "ui://x"}}),
    tool(meta={"ui/resourceUri": "ui://x"}),
]


@pytest.mark.parametrize("other", CHANGES)
def test_what_a_model_or_a_person_reads_is_pinned(other: Tool, tmp_path: Path) -> None:
    """HST-03, TOL-04: each change is found, blocks the tool, is shown, and is gone once it is
    approved.
    """
    pins = Pins(tmp_path / "interlock.lock")
    assert pins.first("s", ServerFeatures(tools=[tool()])) == []
    assert pins.seen("s", ServerFeatures(tools=[tool()])) == []
    [difference] = pins.seen("s", ServerFeatures(tools=[other]))
    assert (difference.kind, difference.name, difference.how) == ("tool", "add", "changed")
    assert (difference.digest, difference.was != difference.now) == (digest_of(other), True)
    assert list(pins.blocked("s")) == [("tool", "add")]
    assert unified(difference).count("\n") > 2
    assert pins.approve("s", difference)
    assert pins.blocked("s") == {}
    assert pins.seen("s", ServerFeatures(tools=[other])) == []
    assert Pins(tmp_path / "interlock.lock").seen("s", ServerFeatures(tools=[other])) == []


def test_added_gone_prompts_and_instructions() -> None:
    """HST-03: new features are blocked until they are approved; what has gone is told; all that is
    read is pinned.
    """
    prompt = Prompt(name="plan", description="Plans.", arguments=[PromptArgument(name="city")])
    pins = Pins()
    assert not pins.known("s")
    pins.first("s", ServerFeatures(tools=[tool()], prompts=[prompt], instructions="Be kind."))
    assert pins.known("s")
    other = Prompt(
        name="plan", description="Plans.", arguments=[PromptArgument(name="city", required=True)]
    )
    now = ServerFeatures(tools=[tool(name="mul")], prompts=[other], instructions="Be quick.")
    found = {(each.kind, each.name): each for each in pins.seen("s", now)}
    hows = {
        ("tool", "mul"): "added",
        ("prompt", "plan"): "changed",
        ("instructions", ""): "changed",
        ("tool", "add"): "gone",
    }
    assert {key: each.how for key, each in found.items()} == hows
    assert found["tool", "mul"].was == ""
    assert found["tool", "add"].now == ""
    assert found["tool", "add"].digest == ""
    assert set(pins.blocked("s")) == {("tool", "mul"), ("prompt", "plan"), ("instructions", "")}
    assert json.loads(found["instructions", ""].now) == "Be quick."
    assert all(pins.approve("s", each) for each in found.values())
    assert pins.seen("s", now) == []
    assert pins.blocked("s") == {}


def test_only_what_was_shown_is_approved() -> None:
    """HST-03: a server that changes a tool once more while the person reads gets nothing by it."""
    pins = Pins()
    pins.first("s", ServerFeatures(tools=[tool()]))
    [shown] = pins.seen("s", ServerFeatures(tools=[tool(description="Adds well.")]))
    pins.seen("s", ServerFeatures(tools=[tool(description="Sends your files.")]))
    assert not pins.approve("s", shown)
    assert pins.blocked("s")
    [gone] = [each for each in pins.seen("s", ServerFeatures()) if each.how == "gone"]
    pins.seen("s", ServerFeatures(tools=[tool()]))
    assert not pins.approve("s", gone)
    assert pins.seen("s", ServerFeatures(tools=[tool()])) == []


def test_a_difference_shows_what_cannot_be_seen() -> None:
    """HST-03: hidden text in a new description is written out, and long descriptions are compared
    line by line.
    """
    pins = Pins()
    pins.first("s", ServerFeatures(tools=[tool(description="One.\nTwo.\nThree.")]))
    [difference] = pins.seen(
        "s",
        ServerFeatures(tools=[tool(description="One.\nTwo.\u200b\u202e\U000e0041\x1b[8m\nThree.")]),
    )
    lines = unified(difference).splitlines()
    added = [line for line in lines if line.startswith("+") and not line.startswith("+++")]
    assert len(added) == 1
    assert "⟨U+200B⟩⟨U+202E⟩⟨U+E0041⟩" in added[0]
    assert "Three." not in added[0]
    for text in (difference.now, "\n".join(lines)):
        assert not set(text) & set("\u200b\u202e\U000e0041\x1b")
    assert pins.approve("s", difference)


def test_commands() -> None:
    """SEC-17: a server is started without a question only by the command that was approved
    for it.
    """
    pins = Pins()
    assert not pins.approved_command("s", "d1")
    assert not pins.approved_command("s", "")
    pins.approve_command("s", "d1")
    assert pins.approved_command("s", "d1")
    assert not pins.approved_command("s", "d2")
    assert not pins.approved_command("t", "d1")
    assert not pins.known("s")
    pins.first("s", ServerFeatures(tools=[tool()]))
    assert pins.approved_command("s", "d1")
    pins.forget("s")
    assert not pins.approved_command("s", "d1")
    assert not pins.known("s")


def test_the_file_is_for_people(tmp_path: Path) -> None:
    """HST-01: sorted, indented and readable, so that version control shows what was approved."""
    one = tmp_path / "one.lock"
    other = tmp_path / "other.lock"
    Pins(one).first("s", ServerFeatures(tools=[tool(), tool(name="ä")]))
    Pins(other).first(
        "s",
        ServerFeatures(tools=[tool(name="ä"), tool(input_schema=dict(reversed(SCHEMA.items())))]),
    )
    text = one.read_text(encoding="utf-8")
    assert json.loads(text) == json.loads(other.read_text(encoding="utf-8"))
    assert text.endswith("}\n")
    assert '          "ä": {' in text.splitlines()
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == [
        "one.lock",
        "other.lock",
    ]


def _edited(change: Callable[[Any], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        data = json.loads(path.read_text(encoding="utf-8"))
        change(data)
        path.write_text(json.dumps(data), encoding="utf-8")

    return edit


BROKEN: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.write_bytes(b""), "not JSON"),
    (lambda path: path.write_bytes(path.read_bytes()[:-40]), "not JSON"),
    (lambda path: path.write_bytes(b"\xff"), "not JSON"),
    (lambda path: path.write_text("[]"), "not a file of pins"),
    (lambda path: path.write_text('{"lockfileVersion": 3}'), "not a file of pins"),
    (lambda path: path.write_text('{"a":' * 200_000), "file of pins|not JSON|nested too deeply"),
    (
        _edited(lambda data: data.update(version=2)),
        "is of version 2; this Interlock knows version 1. Update Interlock",
    ),
    (_edited(lambda data: data.update(version=True)), "is of version true"),
    (_edited(lambda data: data.pop("version")), "is of version null"),
    (
        _edited(
            lambda data: data["servers"]["s"]["features"]["tool"]["add"]["form"].update(
                description="Else."
            )
        ),
        "'s' has a digest at tool 'add'",
    ),
    (
        _edited(lambda data: data["servers"]["s"]["features"]["tool"]["add"].pop("digest")),
        "'s' has a digest",
    ),
    (
        _edited(lambda data: data["servers"]["s"]["features"].pop("prompt")),
        "'s' was changed by hand",
    ),
    (_edited(lambda data: data["servers"]["s"].update(extra=1)), "'s' was changed by hand"),
    (_edited(lambda data: data["servers"].update(s=[])), "'s' was changed by hand"),
]


@pytest.mark.parametrize("break_it, words", BROKEN)
def test_a_file_that_is_not_understood_is_left_alone(
    break_it: Callable[[Path], object], words: str, tmp_path: Path
) -> None:
    """HST-03: a broken, edited or newer file is an error with a remedy; nothing is approved by it,
    and nothing overwrites it.
    """
    path = tmp_path / "interlock.lock"
    Pins(path).first("s", ServerFeatures(tools=[tool()]))
    break_it(path)
    before = path.read_bytes()
    pins = Pins(path)
    for act in (
        lambda: pins.known("s"),
        lambda: pins.seen("s", ServerFeatures(tools=[tool()])),
        lambda: pins.first("t", ServerFeatures(tools=[tool()])),
        lambda: pins.approve_command("s", "d"),
        lambda: pins.forget("s"),
    ):
        with pytest.raises(BadPins, match=words):
            act()
    assert path.read_bytes() == before


def test_a_folder_that_is_missing_is_told(tmp_path: Path) -> None:
    """HST-03: no pins without a place for them."""
    with pytest.raises(BadPins, match="cannot be written"):
        Pins(tmp_path / "none" / "interlock.lock").first("s", ServerFeatures())


def _host(path: str, name: str, begin: Any) -> None:
    pins = Pins(Path(path))
    begin.wait()
    for number in range(12):
        pins.first(f"{name}{number}", ServerFeatures(tools=[tool()]))
        pins.approve_command("shared", f"{name}{number}")


def test_hosts_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    """HST-03: several processes and threads keep their pins in one file, and all of them are there
    afterwards.
    """
    path = tmp_path / "interlock.lock"
    context = multiprocessing.get_context("spawn")
    begin = context.Barrier(3)
    processes = [
        context.Process(target=_host, args=(str(path), name, begin)) for name in ("a", "b")
    ]
    for process in processes:
        process.start()
    local = threading.Barrier(2)
    threads = [threading.Thread(target=_host, args=(str(path), name, local)) for name in ("c", "d")]
    begin.wait()
    for thread in threads:
        thread.start()
    for each in (*threads, *processes):
        each.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
    pins = Pins(path)
    assert all(pins.known(f"{name}{number}") for name in "abcd" for number in range(12))


def test_another_host_is_seen_at_once(tmp_path: Path) -> None:
    """HST-03: what one host approves holds in the other, and who comes second with something else
    is told the difference.
    """
    path = tmp_path / "interlock.lock"
    one = Pins(path)
    other = Pins(path)
    one.first("s", ServerFeatures(tools=[tool()]))
    [difference] = other.first("s", ServerFeatures(tools=[tool(description="Else.")]))
    assert difference.how == "changed"
    assert other.blocked("s")
    one.seen("s", ServerFeatures(tools=[tool(description="Else.")]))
    assert one.approve("s", difference)
    assert other.blocked("s") == {}


def test_a_link_remains_a_link(tmp_path: Path) -> None:
    """HST-01: whoever keeps the file elsewhere, and a link to it here, still does after a
    change.
    """
    real = tmp_path / "real.lock"
    link = tmp_path / "interlock.lock"
    Pins(real).first("s", ServerFeatures(tools=[tool()]))
    link.symlink_to(real)
    Pins(link).approve_command("s", "d")
    assert link.is_symlink()
    assert Pins(real).approved_command("s", "d")


JSONS: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(each) for key, each in reversed(value.items())}
    return [_turned(each) for each in value] if isinstance(value, list) else value


@given(st.dictionaries(st.text(max_size=5), JSONS, max_size=4), st.text(max_size=20))
def test_any_tool_can_be_pinned(schema: dict[str, Any], description: str) -> None:
    """HST-03: whatever a server calls its tool, it is pinned, found again in any order of keys, and
    a change of it is shown.
    """
    pins = Pins()
    pins.first("s", ServerFeatures(tools=[tool(input_schema=schema, description=description)]))
    assert (
        pins.seen(
            "s", ServerFeatures(tools=[tool(input_schema=_turned(schema), description=description)])
        )
        == []
    )
    found: list[PinDifference] = pins.seen(
        "s", ServerFeatures(tools=[tool(input_schema=schema, description=description + "!")])
    )
    assert [each.how for each in found] == ["changed"]
    assert unified(found[0])
