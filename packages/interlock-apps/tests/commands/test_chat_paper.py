"""Nothing that a stranger writes reaches the terminal as a command to it, on whatever way it is
printed.
"""

from __future__ import annotations

import asyncio
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent, Completion
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.markdown import Markdown
from rich.text import Text

from interlock.models.interface import Usage
from interlock.typed import form_fields as forms
from interlock.types import (
    AudioContent,
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    EmbeddedResource,
    ImageContent,
    Prompt,
    PromptArgument,
    Resource,
    ResourceContents,
    ResourceLink,
    ResourceTemplate,
    SamplingMessage,
    TextContent,
    Tool,
    ToolAnnotations,
)
from interlock.types import Completion as Suggested
from interlock_apps.commands.chat.completion import LineCompleter
from interlock_apps.commands.chat.event_printer import EventPrinter
from interlock_apps.commands.chat.output import TerminalOutput, rendered
from interlock_apps.commands.chat.parser import ServerOffer
from interlock_apps.commands.chat.question_views import (
    details,
    field_lines,
    filled_lines,
    question_view,
)
from interlock_apps.commands.chat.results import (
    MediaFiles,
    blocks,
    folded,
    rows_of,
    whole,
    yaml_lines,
)
from interlock_apps.fleet import events as e
from interlock_apps.fleet import questions as q

HOSTILE = (
    "\x1b[2J\x1b[31mred",
    "\x1b]0;title\x07",
    "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x9b31m",
    "a\rb",
    "\x08\x08",
    "\x07",
    "\u202eabc",
    "\u200b",
    "\x1bP1$r\x1b\\",
    "\x1b[6n",
    "\x1bc",
    "\x00",
    "\x7f",
    "[link=https://evil.example]x[/link]",
    "[bold]x",
    "\U000e0041",
)
texts = st.one_of(
    st.sampled_from(HOSTILE),
    st.lists(
        st.sampled_from([*HOSTILE, "a", " ", "\n", "\t", "|", "`", "<b>", "中"]), max_size=6
    ).map("".join),
)
SGR = re.compile(r"\x1b\[[0-9;]*m")


def harmless(shown: str) -> bool:
    """Whether nothing but colours, line ends and what can be seen is in it."""
    rest = SGR.sub("", shown)
    return all(
        letter == "\n" or (letter.isprintable() and letter != "\u202e") or letter in "\u3000\xa0"
        for letter in rest
    )


def terminal(width: int = 80, coloured: bool = True) -> tuple[TerminalOutput, io.StringIO]:
    """Paper to write on, and what stands on it."""
    out = io.StringIO()
    return TerminalOutput(
        Vt100_Output(out, lambda: Size(rows=40, columns=width), term="xterm"), coloured=coloured
    ), out


@given(texts, st.booleans(), st.sampled_from([40, 80]))
def test_the_paper_lets_no_command_through(text: str, coloured: bool, width: int) -> None:
    """Even where somebody forgot to make a text fit to be seen, in whatever it is printed."""
    for each in (
        text,
        Text(text, style="bold"),
        Markdown(text),
        Markdown(f"# {text}\n\n- [{text}](https://a.example/{text})"),
    ):
        shown = rendered(each, width, coloured)
        assert harmless(shown), repr(shown)
        if not coloured:
            assert "\x1b" not in shown


def questions(text: str) -> list[q.AnyQuestion]:
    """Every question there is, with a text at each place that a stranger writes."""
    warned = (q.Warned(kind="hidden", words=text, where=text),)
    form = forms.form_fields(
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "title": text, "description": text, "enum": ["x", text]}
            },
        }
    )
    message = SamplingMessage(role="user", content=TextContent(text=text))
    said = CreateMessageResult(role="assistant", content=TextContent(text=text), model=text)
    result = CallToolResult(
        content=[TextContent(text=text)], structured_content={"rows": [{text: text}]}
    )
    common: Any = {"id": "q1", "server": text, "warnings": warned}
    return [
        q.StartQuestion(
            **common, command=text, source=text, variables=(text,), roots=(text,), trusted=True
        ),
        q.PinQuestion(
            **common, changes=(q.FeatureChange(kind="tool", name=text, was=text, now=f"{text}!"),)
        ),
        q.CallQuestion(
            **common,
            tool=text,
            title=f"{text}.",
            description=text,
            arguments={text: [text, {text: text}]},
            why=text,
            input_schema={"title": text},
            annotations=ToolAnnotations(title=text),
        ),
        q.ResultQuestion(**common, tool=text, title=text, result=result),
        q.SampleQuestion(
            **common,
            request=CreateMessageRequestParams(
                messages=[message],
                max_tokens=9,
                system_prompt=text,
                tools=[Tool(name=text, input_schema={})],
            ),
            model=text,
            models={text: text},
        ),
        q.SampledQuestion(**common, model=text, result=said),
        q.FormQuestion(**common, message=text, fields=form),
        q.UrlQuestion(**common, message=text, url=f"https://{text}/", host=text),
    ]


@given(texts)
def test_no_question_carries_a_command(text: str) -> None:
    """`ELI-15`, `SAM-06`: every question, its details and its form, with hostile texts at every
    place.
    """
    media = MediaFiles()
    page, out = terminal()
    for question in questions(text):
        page.print(*question_view(question, media, page.width))
        if isinstance(question, q.CallQuestion):
            page.print(*details(question))
        if isinstance(question, q.FormQuestion):
            page.print(
                *field_lines(question.fields[0], 1, 1),
                *filled_lines(question.fields, {"a": text}, {"a": text}),
            )
    assert harmless(out.getvalue()), repr(out.getvalue())


def events(text: str) -> list[e.Event]:
    """Every event that is printed, with a text at each place that a stranger writes."""
    result = CallToolResult(
        content=[
            TextContent(text=text),
            ImageContent(data="AAAA", mime_type=text),
            AudioContent(data="AAAA", mime_type=text),
            ResourceLink(uri=text, name=text),
            EmbeddedResource(resource=ResourceContents(uri=text, text=text)),
        ]
    )
    said = CreateMessageResult(role="assistant", content=TextContent(text=text), model=text)
    return [
        e.ModelSays(kind="text", text=f"{text}\n\n{text}"),
        e.ModelSays(kind="thought", text=f"{text}\n\n{text}"),
        e.ModelSays(kind="note", text=text),
        e.ModelSaid(model=text, step=1, result=said),
        e.ModelSaid(model=text, step=2, result=said),
        e.ModelFailed(model=text, step=1, kind="cut", words=text),
        e.Trimmed(rule=text, words=text, tokens=9),
        e.CallProposed(
            call="c", name=text, server=text, tool=text, title=text, arguments={text: text}
        ),
        e.CallProgress(call="c", progress=1, total=2, message=text),
        e.CallEnded(call="c", server=text, tool=text, result=result),
        e.CallEnded(call="d", server=text, tool=text, error=text),
        e.SampleEnded(server=text, question="q", model=text, error=text),
        e.ResourceRead(server=text, uri=text, error=text),
        e.ResourceRead(server=text, uri=text),
        e.ServerState(server=text, state="down", words=text),
        e.Pinned(server=text, kind="tool", name=text, how="blocked"),
        e.RootsChanged(folders={text: (text,)}),
        e.SettingsChanged(what="server", name=text, how="added", file=text),
        e.Notice(level="warning", words=text, server=text),
        e.ResourceUpdated(server=text, uri=text),
        e.TurnEnded(reason="failed", words=text, usage=Usage(input=1)),
    ]


@given(texts)
def test_no_event_carries_a_command(text: str) -> None:
    """`HST-03`: every event that is printed, and what stands below while it is under way."""
    page, out = terminal()
    feed = EventPrinter(page, clock=lambda: 0.0)
    for event in events(text):
        feed.receive(e.LogEntry(seq=0, at=0.0, event=event))
        live = "".join(fragment[1] for fragment in feed.live())
        assert harmless(live), repr(live)
    assert harmless(out.getvalue()), repr(out.getvalue())


@given(texts)
def test_no_result_carries_a_command(text: str) -> None:
    media = MediaFiles()
    page, out = terminal(120)
    result = CallToolResult(
        content=[TextContent(text=text)], structured_content={text: [{"a": text, text: [text]}]}
    )
    page.print(
        *whole(result, media, 120),
        *whole(result, media, 40),
        *blocks(result.content, media),
        folded(result),
    )
    page.print("\n".join(yaml_lines({text: {text: [text, [text], {}]}})))
    assert harmless(out.getvalue()), repr(out.getvalue())


@given(texts, st.sampled_from(["/", "/p", "/plan ", "/plan x=", "@", "@s", "@s:a://"]))
def test_no_suggestion_carries_a_command(text: str, typed: str) -> None:
    """What is inserted can be seen, and so can what is shown beside it."""
    prompt = Prompt(
        name="plan",
        title=text,
        description=text,
        arguments=[PromptArgument(name="x", description=text), PromptArgument(name=text)],
    )
    offer = ServerOffer(
        server="s",
        prompts=[prompt, Prompt(name=text or "-", description=text)],
        resources=[Resource(uri=f"a://{text}", name=text, title=text)],
        templates=[
            ResourceTemplate(uri_template="a://{x}", name=text),
            ResourceTemplate(uri_template=f"{text}{{x}}", name=text),
        ],
    )

    async def complete(*_: Any) -> Suggested:
        return Suggested(values=[text, "fine"])

    async def offered() -> list[Completion]:
        choices = LineCompleter(complete, lambda: [offer], {"help": "help"}, pause=0)
        return [
            each async for each in choices.get_completions_async(Document(typed), CompleteEvent())
        ]

    found = asyncio.run(offered())
    assert found
    for each in found:
        assert each.text.isprintable()
        assert harmless(each.display_text + each.display_meta_text), repr(
            (each.display_text, each.display_meta_text)
        )


def test_calls_under_way_have_a_bar_each() -> None:
    """Several at once, with or without a total."""
    feed = EventPrinter(terminal()[0], clock=lambda: 2.0)
    for event in (
        e.CallProposed(call="a", name="s__a", server="s", tool="a"),
        e.CallProposed(call="b", name="s__b", server="s", tool="b", title="Be"),
        e.CallProgress(call="a", progress=5, total=10, message="half"),
        e.CallProgress(call="b", progress=7),
        e.CallProgress(call="gone", progress=7),
    ):
        feed.receive(e.LogEntry(seq=0, at=0.0, event=event))
    live = "".join(fragment[1] for fragment in feed.live())
    assert live.splitlines()[:2] == [
        "  s · a [########........]  50% half 0 s",
        "  s · Be [7]  0 s",
    ]


def test_lines_are_no_wider_than_the_terminal() -> None:
    """From 40 columns up, with long words."""
    page, out = terminal(40, coloured=False)
    for question in questions("a-very-long-word-" * 6):
        page.print(*question_view(question, MediaFiles(), page.width))
    assert max(len(line) for line in out.getvalue().splitlines()) <= 40


def test_no_colours_where_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    out = io.StringIO()
    page = TerminalOutput(Vt100_Output(out, lambda: Size(rows=40, columns=80), term="xterm"))
    page.print(Text("red", style="red"))
    page.note("careful", "bold yellow")
    assert out.getvalue() == "red\ncareful\n"
    monkeypatch.delenv("NO_COLOR")
    assert TerminalOutput(page.output).coloured


# -- data and results ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data, lines",
    [
        ({"a": 1, "b": "two", "c": None, "d": True}, ["a: 1", "b: two", "c: null", "d: true"]),
        (
            {"a": {"b": [1, {"c": 2, "d": 3}], "e": []}},
            ["a:", "  b:", "    - 1", "    - c: 2", "      d: 3", "  e: []"],
        ),
        ({"a": "one\ntwo"}, ["a: |", "  one", "  two"]),
        ({"a": "12", "b": "yes", "c": "", "d": " x"}, ['a: "12"', 'b: "yes"', 'c: ""', 'd: " x"']),
        ([[1, 2], "x"], ["- - 1", "  - 2", "- x"]),
        ({}, ["{}"]),
    ],
)
def test_data_is_read_like_yaml(data: Any, lines: list[str]) -> None:
    assert yaml_lines(data) == lines


@pytest.mark.parametrize(
    "data, rows",
    [
        ([{"a": 1}], [{"a": 1}]),
        ({"total": 2, "rows": [{"a": 1}, {"b": 2}]}, [{"a": 1}, {"b": 2}]),
        ({"one": [{"a": 1}], "two": [{"b": 2}]}, []),
        ([1, 2], []),
        ("x", []),
        ({"rows": []}, []),
    ],
)
def test_a_list_of_objects_is_a_table(data: Any, rows: list[dict[str, Any]]) -> None:
    assert rows_of(data) == rows


def test_a_table_has_columns_where_there_is_room() -> None:
    result = CallToolResult(
        content=[],
        structured_content={"flights": [{"id": "A1", "price": 10}, {"id": "B2", "price": 20}]},
    )
    wide = rendered(whole(result, MediaFiles(), 100)[0], 100, False)
    assert [line.split() for line in wide.splitlines()] == [
        ["id", "price"],
        ["A1", "10"],
        ["B2", "20"],
    ]
    narrow = rendered(whole(result, MediaFiles(), 40)[0], 40, False)
    assert narrow.splitlines() == ["- id: A1", "  price: 10", "- id: B2", "  price: 20"]
    assert folded(result) == "2 flights"


def test_media_are_files_of_this_person_alone() -> None:
    """Images as links: a folder 0700, files 0600, nothing that a browser would run, and all gone at
    the end.
    """
    from pathlib import Path
    from urllib.parse import urlsplit

    media = MediaFiles()
    place = Path(urlsplit(media.keep("iVBORw==", "image/png")).path)
    assert place.suffix == ".png"
    assert place.read_bytes() == b"\x89PNG"
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700
    assert media.keep("PHN2Zz4=", "image/svg+xml").endswith(".txt")
    assert media.keep("PGI+", "text/html; charset=utf-8").endswith(".txt")
    assert media.keep("not base64", "image/png") == ""
    assert media.keep("AAAA", "../../x").endswith(".bin")
    media.forget()
    assert not place.parent.exists()
