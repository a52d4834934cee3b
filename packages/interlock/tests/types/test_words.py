"""What the errors say, and the small readings that types offer to a person."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import types as t


def test_an_answer_that_is_an_error_says_its_words_and_its_code() -> None:
    """Code, message and data are there to be looked at."""
    bad = t.McpError(-32602, "Unknown tool: x", {"name": "x"})
    assert str(bad) == "Unknown tool: x (code -32602)"
    assert (bad.code, bad.message, bad.data) == (-32602, "Unknown tool: x", {"name": "x"})


UNREACHED = [
    (t.Unreachable("It has gone."), "It has gone."),
    (t.Unreachable("It has gone.", exit_code=3), "It has gone. (exit code 3)"),
    (t.Unreachable("It has gone.", exit_code=0), "It has gone. (exit code 0)"),
    (
        t.Unreachable("It has gone.", exit_code=-9, stderr="a\nb\n"),
        "It has gone. (exit code -9)\n--- last lines of its stderr ---\na\nb",
    ),
    (t.TimedOut("Too slow."), "Too slow."),
]


@pytest.mark.parametrize("bad, words", UNREACHED, ids=[words for _, words in UNREACHED])
def test_no_answer_says_what_is_known_of_the_peers_end(bad: t.Unreachable, words: str) -> None:
    """Exit code and the last lines of stderr, where there are any (`ERR-21`)."""
    assert str(bad) == words


FAMILY: list[tuple[type[Exception], type[Exception]]] = [
    (t.McpError, t.InterlockError),
    (t.Forbidden, t.McpError),
    (t.ProtocolError, t.InterlockError),
    (t.Unreachable, t.InterlockError),
    (t.TimedOut, t.Unreachable),
    (t.ToolError, t.InterlockError),
    (t.Declined, t.ToolError),
    (t.Cancelled, t.ToolError),
    (t.Unanswerable, t.ToolError),
]


@pytest.mark.parametrize("kind, of", FAMILY, ids=[kind.__name__ for kind, _ in FAMILY])
def test_errors_are_caught_by_what_they_are(kind: type[Exception], of: type[Exception]) -> None:
    """A timeout made here is never taken for an error that the peer sent (`ERR-21`)."""
    assert issubclass(kind, of)
    assert issubclass(kind, t.McpError) == (kind in (t.McpError, t.Forbidden))


def test_a_tool_is_shown_under_its_best_name() -> None:
    """Title, then the annotations' title, then the name (`TOL-26`)."""
    schema = {"type": "object"}
    titled = t.ToolAnnotations(title="Noted")
    assert (
        t.Tool(name="n", title="Titled", annotations=titled, input_schema=schema).label == "Titled"
    )
    assert t.Tool(name="n", annotations=titled, input_schema=schema).label == "Noted"
    assert t.Tool(name="n", annotations=t.ToolAnnotations(), input_schema=schema).label == "n"
    assert t.Tool(name="n", title="", input_schema=schema).label == "n"


RESULTS: list[tuple[t.CallToolResult, Any]] = [
    (t.CallToolResult(content=[]), ""),
    (
        t.CallToolResult(
            content=[
                t.TextContent("a"),
                t.ImageContent(data="", mime_type="x/y"),
                t.TextContent("b"),
            ]
        ),
        "a\nb",
    ),
    (t.CallToolResult(content=[t.TextContent("3")], structured_content={"result": 3}), 3),
    (t.CallToolResult(content=[], structured_content={"result": None}), None),
    (
        t.CallToolResult(content=[], structured_content={"result": 3, "more": 1}),
        {"result": 3, "more": 1},
    ),
    (t.CallToolResult(content=[], structured_content={}), {}),
    (t.CallToolResult(content=[t.TextContent("x")], structured_content=None), None),
    (t.CallToolResult(content=[], structured_content=[1]), [1]),
    (t.CallToolResult(content=[t.TextContent("x")], is_error=False), "x"),
]


@pytest.mark.parametrize("result, value", RESULTS, ids=range(len(RESULTS)))
def test_a_result_as_plain_data(result: t.CallToolResult, value: Any) -> None:
    """Structured content where there is any, unwrapped where it only wraps, else the text."""
    assert result.value() == value


def test_a_failed_call_has_no_value() -> None:
    """It raises the tool's words, also where there are none."""
    with pytest.raises(t.ToolError, match="no such seat"):
        t.CallToolResult(
            content=[t.TextContent("no such seat")], is_error=True, structured_content={"result": 1}
        ).value()
    with pytest.raises(t.ToolError, match="failed without a message"):
        t.CallToolResult(content=[], is_error=True).value()
