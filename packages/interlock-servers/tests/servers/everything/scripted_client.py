"""Who sits in front of the everything server in its tests: a person, a model, and a call of each
tool.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from interlock import Changed, TextContent, types
from interlock.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ToolResultContent,
    ToolUseContent,
)
from interlock_servers.everything.schemas import DIALECTS, VARIANTS

APPS = {types.UI_EXTENSION: {"mimeTypes": [types.APP_MIME_TYPE]}}
"""The extensions of a client that shows apps."""

ANSWERS: dict[str, Any] = {
    "guests": 4,
    "seat": "window",
    "confirm": True,
    "colour": "green",
    "value": 7,
}


def person(params: ElicitRequestParams) -> Any:
    """A person who says yes and wants a window, and whose name is Ann."""
    if params.mode == "url":
        return True
    fields = (params.requested_schema or {})["properties"]
    if fields.keys() == {"name"}:
        return {"name": "Ann"}
    if fields.get("value", {}).get("type") == "string":
        return {"value": "Ann"}
    return {name: value for name, value in ANSWERS.items() if name in fields}


USES = [
    ToolUseContent(
        id="1", name="capital", input={"country": "Peru"}, meta={"example.com/signature": "s"}
    ),
    ToolUseContent(id="2", name="total", input={"numbers": [1, 2]}),
    ToolUseContent(id="3", name="capital", input={"country": "Atlantis"}),
    ToolUseContent(id="4", name="rm", input={}),
    ToolUseContent(id="5", name="total", input={"numbers": "many"}),
]


def model(params: CreateMessageRequestParams) -> CreateMessageResult:
    """A model that uses the tools which it is given, all at once, and then says what it has
    learned.
    """
    last = params.messages[-1].content if params.messages else []
    blocks = last if isinstance(last, list) else [last]
    results = [block for block in blocks if isinstance(block, ToolResultContent)]
    if (
        params.tools
        and not results
        and (params.tool_choice is None or params.tool_choice.mode != "none")
    ):
        uses: list[types.SamplingContent] = [TextContent("Let me see."), *USES]
        return CreateMessageResult(
            role="assistant", content=uses, model="m-1", stop_reason="toolUse"
        )
    words = (
        "; ".join(
            block.text
            for result in results
            for block in result.content
            if isinstance(block, TextContent)
        )
        or "Yes."
    )
    return CreateMessageResult(
        role="assistant", content=TextContent(words), model="m-1", stop_reason="endTurn"
    )


async def soon(changes: AsyncIterator[Changed]) -> Changed:
    """The next change; one that never comes is a failure, and not a test that never ends."""
    return await asyncio.wait_for(anext(changes), 20)


# tool -> arguments, and the text of the result; None where a test of its own looks at it
CALLS: dict[str, tuple[dict[str, Any], str | None]] = {
    "echo": ({"text": "hm"}, "hm"),
    "add": ({"a": 2, "b": 3}, "5"),
    "divide": ({"a": 3, "b": 4}, "0.75"),
    "is_even": ({"number": 3}, "false"),
    "nothing": ({}, ""),
    "some_bytes": ({"length": 3}, None),
    "picture": ({"red": 1}, None),
    "sound": ({}, None),
    "document": ({}, None),
    "links": ({}, None),
    "mixture": ({}, "Text first."),
    "annotated": ({}, None),
    "measure": ({"place": "Rome"}, "Rome: 4 °C, cloudy."),
    "measure_in_json": ({"place": "Rome"}, '{"place":"Rome","celsius":4.0,"sky":"cloudy"}'),
    "count_words": ({"text": "a b A"}, "a: 2, b: 1"),
    "whole_result": ({}, "For the user's eyes."),
    "who_am_i": ({}, None),
    "show_meta": ({}, None),
    "list_primes": ({"most": 12}, "2, 3, 5, 7, 11"),
    "name_season": ({"month": 12}, "Winter."),
    "halve": ({"number": 3}, "1.5"),
    "is_leap_year": ({"year": 2100}, "2100 has 365 days."),
    "middle_name": ({"name": "Ada Lovelace"}, "There is none."),
    "draw_shape": ({"kind": "circle", "size": 2}, "A circle of 2."),
    "draw_tree": ({"depth": 1}, "A family of 3."),
    "convert": ({"celsius": 20}, "68 °F"),
    "take_types": (
        {"order": {"items": [{"name": "tea", "count": 2}], "until": "2026-07-28", "place": [1, 2]}},
        "2 ordered, normal.",
    ),
    "mirror": (
        {"region": "eu-west", "shard": 3, "urgent": True, "customer": {"tier": "paid"}},
        "Taken: region, shard, urgent, customer.",
    ),
    **{
        name: (given.fits, f"Taken: {', '.join(given.fits) or 'nothing'}.")
        for name, given in {**VARIANTS, **DIALECTS}.items()
    },
    "broken": ({}, None),
    "fail": ({}, None),
    "fail_with_content": ({}, None),
    "refuse": ({}, None),
    "too_slow": ({}, None),
    "one_at_a_time": ({"seconds": 0}, "My turn is over."),
    "with_scope": ({}, None),
    "contradict": ({}, None),
    "roll_dice": ({"count": 3}, None),
    "roll_again": ({"count": 1}, None),
    "work": ({"steps": 2}, "Done in 2 steps."),
    "count_up": ({"to": 2}, "Counted to 2."),
    "count_down": ({}, "Lift-off."),
    "log_levels": ({}, "Wrote 8 messages."),
    "sleep": ({"seconds": 0}, "Slept for 0 seconds."),
    "sleep_in_thread": ({"seconds": 0.01}, "Slept for 0.01 seconds."),
    "count_primes": ({"most": 100}, "25"),
    "side_by_side": ({"tasks": 2}, None),
    "come_back_later": ({"seconds": 0.01}, None),
    "wait_for_cancel": ({}, None),
    "cancellations": ({}, "0"),
    "book_table": ({"day": "Friday"}, "Booked for Guest: 4 on Friday (window), deposit number 1."),
    "ask_form": ({}, None),
    "order_pizza": ({}, "A margherita, here."),
    "ask_together": ({}, "Yes. Ann has 1 folders."),
    "ask_as_tasks": ({}, "Yes. Ann"),
    "ask_in_a_hurry": ({}, "It is 7."),
    "ask_by_hand": ({}, "The colour is green, after round 1."),
    "list_roots": ({}, "srv: file:///srv"),
    "sign_in": ({}, "The user visited the page."),
    "visit_page": ({}, "The user has visited the page."),
    "open_account": ({}, None),
    "finish_visit": ({"id": "none"}, None),
    "ask_model": ({"question": "Well?"}, "Yes."),
    "ask_model_closely": ({"question": "Well?"}, "Yes."),
    "show_model": ({}, "Yes."),
    "talk_to_model": ({}, "Yes."),
    "ask_model_with_tools": ({"question": "Well?"}, None),
    "tick": ({}, "1"),
    "read_counter": ({}, '{"count":0}'),
    "start_clock": (
        {"ticks": 1, "seconds": 0.001},
        "The clock ticks 1 times, every 0.001 seconds.",
    ),
    "grow": ({}, "extra_1"),
    "shrink": ({}, None),
    "greet": ({"name": "Ann"}, "Hello, Ann!"),
    "slow_compute": ({"seconds": 0, "label": "x"}, "done x"),
    "failing_job": ({}, None),
    "protocol_error_job": ({}, None),
    "confirm_delete": ({}, None),
    "multi_input": ({}, None),
    "test_tool_with_task": ({}, None),
}

URIS = {
    "everything://greetings/{language}/{name}": (
        "everything://greetings/french/Ann%20Lee",
        "Bonjour, Ann Lee!",
    ),
    "everything://numbers/{number}": ("everything://numbers/7", '{"number":7,"square":49}'),
    "everything://paths/{+path}": ("everything://paths/a/b/c", "The path is a/b/c."),
    "everything://page{#part}": ("everything://page#end", "The part is end."),
    "everything://file{.suffix}": ("everything://file.txt", "The suffix is txt."),
    "everything://segments{/segments*}": ("everything://segments/a/b", '["a","b"]'),
    "everything://points{;x,y}": ("everything://points;x=1;y=2.5", '{"x":1.0,"y":2.5}'),
    "everything://search{?q,limit}": ("everything://search?q=tea", '{"q":"tea","limit":10}'),
    "everything://list?kind={kind}{&page}": (
        "everything://list?kind=new&page=2",
        '{"kind":"new","page":2}',
    ),
    "everything://words/{letter:1}/{word}": (
        "everything://words/t/tea",
        '{"letter":"t","word":"tea"}',
    ),
}
"""Template -> a URI of it, and what stands there."""

PROMPTS: dict[str, dict[str, str]] = {
    "review": {"code": "x = 1"},
    "trip": {"country": "spain", "city": "Bilbao"},
    "hello": {},
    "listen": {},
    "look_up": {},
    "annotated": {},
    "repeat": {"word": "hey", "times": "3"},
    "ask_first": {},
    "refused": {},
}
"""Prompt -> arguments that work."""
