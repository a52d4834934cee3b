"""What a line of the chat means: text, commands, prompts, resources (tables)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.types import Prompt, PromptArgument, Resource, ResourceTemplate
from interlock_apps.commands.chat.markdown_stream import MarkdownStream
from interlock_apps.commands.chat.parser import (
    ChatMessage,
    Command,
    LineError,
    PromptCall,
    ServerOffer,
    TemplateBlank,
    blank_at,
    blanks,
    names_of_prompts,
    quoted,
    read_line,
    words_of,
)
from interlock_apps.fleet.events import Attached

PLAN = Prompt(
    name="plan", arguments=[PromptArgument(name="to", required=True), PromptArgument(name="on")]
)
OFFERS = (
    ServerOffer(
        server="travel",
        prompts=[PLAN, Prompt(name="both"), Prompt(name="help")],
        resources=[Resource(uri="travel://preferences/europe", name="europe", title="Europe")],
        templates=[ResourceTemplate(uri_template="travel://trips/{trip}", name="trip")],
    ),
    ServerOffer(
        server="mail",
        prompts=[Prompt(name="both")],
        resources=[Resource(uri="mail://inbox", name="inbox")],
    ),
)
EUROPE = Attached(server="travel", uri="travel://preferences/europe", title="Europe")
TRIP = Attached(server="travel", uri="travel://trips/Spain-2023")


@pytest.mark.parametrize(
    "line, meant",
    [
        ("hello", ChatMessage("hello", ())),
        ("  two\nlines ", ChatMessage("two\nlines", ())),
        ("//no command", ChatMessage("/no command", ())),
        ("/help", Command("help", "")),
        ("/roots add /tmp/a b", Command("roots", "add /tmp/a b")),
        ("see @travel:travel://preferences/europe.", ChatMessage("see travel://preferences/europe.",
            (EUROPE,))),
        ("see @travel://preferences/europe, yes",
            ChatMessage("see travel://preferences/europe, yes", (EUROPE,))),
        ("@travel://trips/Spain-2023 again?", ChatMessage("travel://trips/Spain-2023 again?",
            (TRIP,))),
        ("@travel://preferences/europe @travel://preferences/europe",
            ChatMessage("travel://preferences/europe travel://preferences/europe", (EUROPE,))),
        ("ask @ada or me@example.com", ChatMessage("ask @ada or me@example.com", ())),
        ("@nobody:x://y", ChatMessage("@nobody:x://y", ())),
        ("/plan to=Rome", PromptCall("travel", PLAN, {"to": "Rome"}, ())),
        ('/travel:plan to="New York" on=', PromptCall("travel", PLAN, {"to": "New York", "on": ""},
            ())),
        ("/plan @travel://preferences/europe to=a=b", PromptCall("travel", PLAN, {"to": "a=b"},
            (EUROPE,))),
        ("/travel:help", PromptCall("travel", OFFERS[0].prompts[2], {}, ())),
        ("/mail:both", PromptCall("mail", OFFERS[1].prompts[0], {}, ())),
    ],
)  # fmt: skip
def test_a_line_means_what_it_says(line: str, meant: object) -> None:
    assert read_line(line, {"help": "", "roots": ""}, OFFERS) == meant


@pytest.mark.parametrize(
    "line, words",
    [
        ("/both", "/travel:both, /mail:both"),
        ("/plam", "Did you mean /plan?"),
        ("/xyz", "See /help."),
        ("/plan Rome", "Rome is not an argument of plan. Its arguments: to=…, on=…."),
        ("/mail:both x=1", "It has no arguments."),
        ("/plan @travel://nothing", "No server has a resource travel://nothing."),
    ],
)
def test_a_line_that_means_nothing_says_what_would(line: str, words: str) -> None:
    wrong = read_line(line, {"help": ""}, OFFERS)
    assert isinstance(wrong, LineError)
    assert words in wrong.words


def test_a_prompt_goes_by_its_shortest_name() -> None:
    assert list(names_of_prompts(OFFERS, {"help"})) == [
        "plan",
        "travel:both",
        "travel:help",
        "mail:both",
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), max_size=4))
def test_a_quoted_text_is_one_word(texts: list[str]) -> None:
    """Whatever a value holds, `name=value` with it quoted gives it back."""
    line = " ".join(f"n={quoted(text)}" for text in texts)
    assert [word.text for word in words_of(line)] == [f"n={text}" for text in texts]


@given(st.text(max_size=60))
def test_every_line_means_something(line: str) -> None:
    assert isinstance(
        read_line(line, {"help": ""}, OFFERS), Command | PromptCall | ChatMessage | LineError
    )


@pytest.mark.parametrize(
    "template, typed, blank",
    [
        ("a://{x}", "a:", None),
        ("a://{x}", "a://", TemplateBlank("x", "", {}, "a://", "")),
        ("a://{x}/b/{y}", "a://one", TemplateBlank("x", "one", {}, "a://", "/b/")),
        ("a://{x}/b/{y}", "a://one/b/tw", TemplateBlank("y", "tw", {"x": "one"}, "a://one/b/", "")),
        ("a://{x}.txt", "a://n", TemplateBlank("x", "n", {}, "a://", ".txt")),
        ("a://{+x}", "a://", None),
        ("a://b", "a://b", None),
    ],
)
def test_the_blank_that_is_being_typed(
    template: str, typed: str, blank: TemplateBlank | None
) -> None:
    assert blank_at(template, typed) == blank


def test_the_blanks_of_a_template() -> None:
    assert blanks("a://{x}/{+path}{?q,lang,x}") == ["x", "path", "q", "lang"]


@pytest.mark.parametrize(
    "pieces, whole, rest",
    [
        (["one", " line"], [], "one line"),
        (["one\n", "\ntwo"], ["one"], "two"),
        (["a\n\nb\n\n", "c"], ["a", "b"], "c"),
        (["```\na\n\nb\n", "```\n\nend"], ["```\na\n\nb\n```"], "end"),
        (["~~~\n```\n\n", "x"], [], "~~~\n```\n\nx"),
        (["\n\n\n"], [], ""),
    ],
)
def test_what_the_model_says_is_cut_into_blocks(
    pieces: list[str], whole: list[str], rest: str
) -> None:
    """A block is whole at an empty line outside of code; nothing gets lost."""
    said = MarkdownStream()
    assert [block for piece in pieces for block in said.feed(piece)] == whole
    assert said.rest == rest
    assert said.end() == ([rest] if rest else [])


@given(st.text(alphabet="ab\n `~", max_size=40), st.lists(st.integers(1, 5), max_size=10))
def test_no_letter_of_the_model_is_lost(text: str, cuts: list[int]) -> None:
    said = MarkdownStream()
    blocks = list[str]()
    place = 0
    for cut in [*cuts, len(text)]:
        blocks += said.feed(text[place : place + cut])
        place += cut
    blocks += said.end()
    assert "".join("".join(blocks).split()) == "".join(text.split())
