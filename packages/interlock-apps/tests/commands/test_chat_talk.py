"""The conversation at the terminal: lines, commands, prompts with their arguments, resources,
cancelling (real hosts, servers in memory).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from interlock import Context, Image, Server
from interlock.cli.program import program
from interlock.models.interface import ModelFacts, ModelFailure
from interlock.models.scripted import Scripted, call
from interlock.typed import form_fields as forms
from interlock.types import ImageContent
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.fleet.policy import Policy
from interlock_apps.fleet.questions import Filled, FormQuestion
from interlock_apps.host.conversations.projects import Project, Projects
from interlock_servers.everything.samples import png
from tests.commands.seated import seated
from tests.host.scene import texts_of
from tests.host.test_model_choice import Thinker
from tests.host.test_steering import Gate

ALLOW = Policy(default="allow")
CITIES = ["Barcelona", "Bari", "New York"]


def guide(**made: Any) -> Server:
    """A server with a prompt, resources, a template, and tools that take their time."""
    server = Server("guide")
    asked: list[tuple[str, str]] = made.setdefault("asked", [])
    going: asyncio.Event = made.setdefault("going", asyncio.Event())

    @server.prompt(title="Plan a trip")
    def plan(city: str, days: str = "3") -> str:
        return f"Plan {days} days in {city}."

    @server.completion("plan", "city")
    def cities(value: str) -> list[str]:
        asked.append(("city", value))
        return [city for city in CITIES if city.lower().startswith(value.lower())]

    @server.resource("guide://likes", title="What I like")
    def likes() -> str:
        return "museums"

    @server.resource("guide://notes/{city}", title="Notes on a city")
    def notes(city: str) -> str:
        return f"notes on {city}"

    @server.completion("guide://notes/{city}", "city")
    def noted(value: str) -> list[str]:
        asked.append(("notes", value))
        return [city for city in ("Bari", "Rome") if city.lower().startswith(value.lower())]

    @server.tool
    async def walk(ctx: Context) -> str:
        """Walk through the city."""
        ctx.progress(1, 4, "half-way \x1b[31mred")
        going.set()
        await asyncio.Event().wait()
        return "never"

    @server.tool
    def picture() -> Image:
        return Image(data=b"\x89PNG\r\n", format="png")

    return server


def texts(model: Scripted) -> str:
    return json.dumps(str(model.requests[-1].messages))


async def test_what_is_said_and_what_the_model_says() -> None:
    """The model's remark stands at the top and in the line; Markdown is rendered; Alt+Enter breaks
    a line.
    """
    model = Scripted(
        "A **bold** word.\n\n- one\n- two",
        facts=ModelFacts(remark="Rule-based, no language model."),
    )
    async with seated({"guide": guide()}, models=[model]) as seat:
        await seat.see("You talk with scripted  Rule-based, no language model.")
        await seat.answer(r"scripted \(Rule-based\) ❯", "first\x1b\rsecond\r")
        await seat.see("A bold word.")
        await seat.see(" • one\n • two")
        await seat.leave()
    assert "first\\\\nsecond" in texts(model)


async def test_commands_and_prompts_are_offered_as_they_are_typed() -> None:
    """What is chosen is taken by Enter and not sent by it; the server is asked for values."""
    made: dict[str, Any] = {"asked": []}
    model = Scripted("Good.")
    async with seated({"guide": guide(**made)}, models=[model]) as seat:
        await seat.answer("❯", "/pl")
        await seat.answer("guide: Plan a trip", "\t")
        await seat.answer("an", "\r city=New")
        await seat.answer("New York", "\t")
        await seat.answer("York", "\r days=")
        seat.type("2\r")
        shown = await seat.answer("y send", "y")
        assert "guide suggests this message:\n  Plan 2 days in New York." in shown
        await seat.see("Good.")
        await seat.leave()
    assert ("city", "New") in made["asked"]
    assert "Plan 2 days in New York." in texts(model)


async def test_arguments_of_a_prompt_are_asked_for_needed_ones_first() -> None:
    made: dict[str, Any] = {"asked": []}
    model = Scripted("Good.")
    async with seated({"guide": guide(**made)}, models=[model]) as seat:
        await seat.answer("❯", "/guide:plan\r")
        await seat.see("city")
        await seat.answer("❯", "\r")
        await seat.see("This field is required.")
        await seat.answer("❯", "Bar")
        await seat.answer("Barcelona", "\t\r")
        seat.type("\r")
        await seat.see(r"days \(optional")
        await seat.answer("❯", "\r")
        assert "Plan 3 days in Barcelona." in await seat.answer("y send", "e")
        await seat.see("city")
        await seat.answer("❯ Barcelona", "\x15Bari\r")
        await seat.see("days")
        await seat.answer("❯", "5\r")
        assert "Plan 5 days in Bari." in await seat.answer("y send", "n")
        await seat.see("Nothing was sent.")
        await seat.leave()
    assert model.requests == []


async def test_resources_are_attached() -> None:
    """`RES-14`: found by their titles, templates with their blanks completed; read when the line is
    sent, and shown.
    """
    made: dict[str, Any] = {"asked": []}
    model = Scripted("Good.")
    async with seated({"guide": guide(**made)}, models=[model]) as seat:
        await seat.answer("❯", "see @what")
        await seat.answer("guide://likes", "\t")
        await seat.answer("guide:guide://likes", "\r")
        seat.type(" and @guide:guide://notes/Ro")
        await seat.answer("Rome", "\t")
        await seat.answer("me", "\r\r")
        await seat.see("@ guide: guide://likes, 7 characters")
        await seat.see("@ guide: guide://notes/Rome")
        await seat.see("Good.")
        await seat.answer("❯", "/read @guide://notes/{city}\r")
        await seat.see("city")
        await seat.answer("❯", "Bari\r")
        await seat.see("notes on Bari")
        await seat.leave()
    assert ("notes", "Ro") in made["asked"]
    assert "museums" in texts(model)
    assert "notes on Rome" in texts(model)


async def test_a_resource_that_cannot_be_read_stops_what_was_to_be_said() -> None:
    model = Scripted("Good.")
    async with seated({"guide": guide()}, models=[model]) as seat:
        await seat.answer("❯", "see @guide:guide://nothing\r")
        await seat.see("✗ guide: guide://nothing cannot be read")
        await seat.leave()
    assert model.requests == []


async def test_control_c_cancels_the_turn_and_the_chat_goes_on() -> None:
    """`CAN-05`: the call is cancelled; its progress stood below, with no command to the terminal in
    it.
    """
    made: dict[str, Any] = {"going": asyncio.Event()}
    async with seated({"guide": guide(**made)}, call("guide__walk"), "Good.", policy=ALLOW) as seat:
        await seat.answer("❯", "go\r")
        await seat.see(r"guide · walk \[####\.+\]  25% half-way ⟨U\+001B⟩\[31mred")
        seat.type("\x03")
        await seat.see("Cancelled")
        await seat.see(r"✗ guide · walk .*\n  Cancelled\.")
        await seat.see("The turn ended")
        await seat.answer("❯", "again\r")
        await seat.see("Good.")
        await seat.leave()


async def test_a_model_that_failed_is_asked_again() -> None:
    """Its words stand there once, and `/retry` asks it with what was said, once."""
    model = Scripted(ModelFailure("It has too much to do.", "overloaded"), "Good.")
    async with seated({"guide": guide()}, models=[model]) as seat:
        await seat.answer("❯", "hello\r")
        await seat.see("gave no answer. It has too much to do.")
        await seat.see("■ /retry asks the model again.")
        await seat.answer("❯", "/retry\r")
        await seat.see("Good.")
        await seat.answer("❯", "/retry\r")
        await seat.see("There is nothing to retry")
        await seat.leave()
    assert seat.text.count("It has too much to do.") == 1
    assert [len(request.messages) for request in model.requests] == [1, 1]


async def test_a_line_that_is_typed_while_it_works() -> None:
    """It reaches the model at the next step of the turn; what was not sent stays in the line."""
    gate = Gate("One.")
    model = Scripted(gate, "Two.", "Three.")
    async with seated({"guide": guide()}, models=[model]) as seat:
        await seat.answer("❯", "go\r")
        await gate.reached.wait()
        await seat.see("Ctrl-C cancels")
        seat.type("be brieg\x7ff\r")
        await seat.see(r"\+ be brief .for the model's next step")
        seat.type("half a li")
        await seat.see(r"\+ half a li")
        gate.open.set()
        await seat.see("Two.")
        await seat.answer("❯ half a li", "ne\r")
        await seat.see("Three.")
        await seat.leave()
    assert [texts_of(request.messages[-1])[-1] for request in model.requests] == [
        "go",
        "be brief",
        "half a line",
    ]


async def test_a_line_after_the_last_step_is_answered_in_the_same_turn() -> None:
    """It is sent while the model writes the answer: the turn goes on with it."""
    gates = [Gate(call("guide__picture")), Gate("One."), Gate("Two.")]
    model = Scripted(*gates)
    async with seated({"guide": guide()}, models=[model], policy=ALLOW) as seat:
        await seat.answer("❯", "go\r")
        gates[0].open.set()
        await gates[1].reached.wait()
        seat.type("and then?\r")
        await seat.see(r"\+ and then\? .for the model's next step")
        gates[1].open.set()
        await gates[2].reached.wait()
        assert texts_of(model.requests[-1].messages[-1]) == ["and then?"]
        gates[2].open.set()
        await seat.see("Two.")
        await seat.leave()
    assert seat.text.index("One.") < seat.text.index("Two.")


async def test_model_context_and_files_by_command(tmp_path: Path) -> None:
    """/model with an effort, /context with the choice of tools, and /attach before a message."""
    one = Scripted("Good.", name="one", facts=ModelFacts(images=False))
    two = Thinker("I see.", name="two", facts=ModelFacts(efforts=("low", "high")))
    (tmp_path / "notes.txt").write_text("Pack light.")
    (tmp_path / "sea.png").write_bytes(png(200))
    async with seated({"guide": guide()}, models=[one, two]) as seat:
        for line, shown in (
            (f"/attach '{tmp_path}/sea.png'", "one accepts no pictures"),
            ("/model two most", "two has no effort most"),
            ("/model two high", "From now on two answers, effort high"),
            ("/context", "tokens are used"),
            ("/context search", "a tool search instead of all tools .your choice"),
            ("/context nothing", "/context auto, all or search"),
            (f"/attach '{tmp_path}/notes.txt' '{tmp_path}/sea.png'", "sea.png, .* with your next"),
            ("/attach none", "No file is attached"),
            (f"/attach '{tmp_path}/sea.png'", "sea.png, .* with your next"),
            ("look\r", "I see."),
        ):
            await seat.answer("❯", line.rstrip("\r") + "\r")
            await seat.see(shown)
        await seat.leave()
    assert seat.talk.files == []
    [request] = two.requests
    assert any(isinstance(block, ImageContent) for block in request.messages[0].content)


async def test_control_c_twice_leaves() -> None:
    made: dict[str, Any] = {"going": asyncio.Event()}
    async with seated({"guide": guide(**made)}, call("guide__walk"), policy=ALLOW) as seat:
        await seat.answer("❯", "\x03")
        await seat.see("again or Ctrl-D to quit")
        seat.type("\x03")
        await seat.end()


async def test_what_is_typed_waits_while_a_question_is_asked() -> None:
    """A question that comes while the person types is shown only after a key of its own, and the
    text is kept.
    """
    server = guide()
    model = Scripted("Good.")
    async with seated({"guide": server}, models=[model]) as seat:
        await seat.answer("❯", "half a li")
        await seat.see("half a li")
        fields = forms.form_fields({"properties": {"a": {"type": "string"}}})
        question = FormQuestion(
            id=seat.host.prompter.new_id(), server="guide", message="Well?", fields=fields
        )
        asked = asyncio.create_task(seat.host.prompter.ask(question))
        await seat.answer("guide asks you a question", "y\r")
        await seat.see("guide asks you\n  Well")
        await seat.answer("d decline", "d")
        assert await asked == Filled(action="decline")
        await seat.answer("❯ half a li", "ne\r")
        await seat.see("Good.")
        await seat.leave()
    assert "half a line" in texts(model)


async def test_the_commands(tmp_path: Path) -> None:
    """/help, /servers, /tools, /model, /roots, /rules, /show, /timeline, /log, /export, /sessions,
    /new and what is no command.
    """
    one = Scripted(call("guide__picture"), "Good.", name="one")
    two = Scripted("Other.", name="two")
    log = SqliteLog(tmp_path / "log.db")
    async with seated({"guide": guide()}, models=[one, two], log=log) as seat:
        await seat.answer("❯", "picture\r")
        await seat.answer("a always", "a")
        await seat.see(r"\[image/png, 6 bytes\]")
        await seat.see("Good.")
        for line, shown in (
            ("/help", "/export +write this conversation"),
            ("/show", r"\[image: image/png, 6 bytes\] file://\S+\.png"),
            ("/show 9", "with N from 1 to 1"),
            ("/servers", "guide up +2 tools, 1 resource, 1 prompt"),
            ("/servers guide", "guide://notes/{city}"),
            ("/servers guide log", "Nothing is logged yet"),
            ("/servers nobody", "There is no server nobody"),
            ("/tools city", "guide · walk"),
            ("/rules", "1 Allow picture of guide until the tool changes. .always."),
            ("/rules forget 1", "There are no remembered decisions"),
            (f"/roots add '{tmp_path}'", "Servers may work in"),
            ("/roots", "all servers"),
            (f"/roots remove '{tmp_path}'", "work in no folder"),
            ("/model two", "❯ two"),
            ("/model three", "There is no model three"),
            ("/timeline", "calls [^\n]*(?s:.*)call picture · guide"),
            ("/timeline all", "/timeline N for the last N turns"),
            ("/log picture", "callEnded"),
            (f"/export {tmp_path / 'log.jsonl'}", "entries in"),
            (f"/export {tmp_path / 'log.jsonl'}", "exists"),
            ("/sessions", "one +1 turns +picture"),
            ("/nothing", "There is no /nothing"),
            ("hello", "Other."),
            ("/new", "You talk with two"),
        ):
            await seat.answer("❯", f"{line}\r")
            await seat.see(shown)
        first = next(iter(seat.host.sessions))
        await seat.answer("❯", f"/resume {first}\r")
        await seat.see("Other.")
        await seat.answer("❯", "/quit\r")
        await seat.end()
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert any(json.loads(line)["event"]["type"] == "callEnded" for line in lines)


async def test_a_narrow_terminal_shows_everything() -> None:
    async with seated(
        {"guide": guide()},
        call("guide__picture"),
        "A rather long answer that has to be broken into several lines.",
        width=40,
    ) as seat:
        await seat.answer("❯", "picture\r")
        shown = await seat.answer("d details", "y")
        question = shown[shown.index("? guide") :]
        assert max(len(line) for line in question.splitlines()) <= 40
        assert "\nguide?  y once  s for this conversation\n" in question
        await seat.see("several\\s+lines.")
        await seat.leave()


@pytest.mark.parametrize("words", [["chat"], ["demo", "--terminal"]])
def test_without_a_terminal_the_chat_points_elsewhere(words: list[str], home: Path) -> None:
    result = CliRunner().invoke(program, words, input="hello\n")
    assert result.exit_code == 2
    assert "interlock ask" in result.output


def test_without_its_libraries_the_chat_says_what_to_install() -> None:
    program = """
import sys
sys.modules["prompt_toolkit"] = None
import click
from interlock_apps.commands import chat
chat.need_terminal = lambda: None
try:
    chat.run_chat(None)
except click.ClickException as bad:
    print(bad.message)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "pip install 'interlock[host]'" in done.stdout


async def test_conversations_are_kept_in_order_and_changed(tmp_path: Path) -> None:
    """/rename, /pin, /find, /messages, /edit, /retry, /branch, /branches, /export, /delete and
    /project.
    """
    answers = ("Rome is warm.", "Oslo is cold.", "Very cold.", "Take gloves.", "In none.")
    log = SqliteLog(tmp_path / "log.db")
    projects = Projects([Project(name="Trips", servers=())])
    async with seated({}, *answers, log=log, projects=projects) as seat:
        await seat.answer("❯", "How is Rome?\r")
        await seat.see("Rome is warm.")
        page = tmp_path / "rome.html"
        for line, shown in (
            ("/rename Cities of the world", "❯"),
            ("/pin", "Pinned."),
            ("/sessions", "1 turns  pinned  Cities of the world"),
            ("/find warm", "model: Rome is warm"),
            ("/find nothing", "Nothing was found"),
            ("/messages", "1 you: How is Rome"),
            ("/edit 2", "your own messages"),
            ("/edit 9", "/edit N"),
            ("/edit 1 How is Oslo?", "Oslo is cold."),
            ("/retry 2", "Very cold."),
            ("/branches", "At message 1: branch 2 of 2"),
            ("/branches 2 1", "Oslo is cold."),
            ("/branch 2", "goes on after message 2"),
            ("What now?", "Take gloves."),
            (f"/export {page}", "The conversation is in"),
            ("/project", "Trips"),
            ("/project Work", "There is no project Work"),
            ("/project Trips", "You talk with"),
            ("/new", "You talk with"),
            ("hello", "In none."),
        ):
            await seat.answer("❯", f"{line}\r")
            await seat.see(shown)
        assert seat.talk.session.project is not None
        first = next(iter(seat.host.sessions))
        await seat.answer("❯", "/edit 1\r")
        await seat.see("/edit 1 hello")
        seat.type("\x15/delete\r")
        await seat.see("/delete ID")
        await seat.answer("❯", f"/delete {first}\r")
        await seat.see("is erased")
        await seat.answer("❯", f"/resume {first}\r")
        await seat.see("There is no conversation")
        await seat.leave()
    assert "Take gloves." in page.read_text(encoding="utf-8")
