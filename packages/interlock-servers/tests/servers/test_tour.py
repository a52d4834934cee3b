"""The tour: all of it goes well, with the weather and without, and it looks right where there are
no colours.
"""

from __future__ import annotations

import builtins
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock import Client, types
from interlock_servers.everything import server
from interlock_servers.tour import main
from interlock_servers.tour.person import AtTerminal
from interlock_servers.tour.stage import Messages, Stage, short
from tests.servers.weather_site import WeatherSite

NOBODY = "http://127.0.0.1:9"  # the discard port: nobody answers there


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small folder to show."""
    (tmp_path / "README.md").write_text("# Small\n\nSee the README again.\n", encoding="utf-8")
    return tmp_path


def test_all_goes_well(
    site: WeatherSite,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Three servers as children, six conversations in both eras, two over HTTP; every message is
    shown with direction and revision.
    """
    monkeypatch.setenv("INTERLOCK_WEATHER_URL", site.url)
    assert main(["--folder", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"✓ All \d+ steps succeeded, in \d+ messages\.", shown)
    assert "Wind Advisory until this evening" in shown
    assert "61 °F" in shown or "60 °F" in shown
    for line in (
        "2026-07-28 → server/discover #1",
        "2026-07-28 ← questions",
        "2026-07-28 → subscriptions/listen",
        "2025-11-25 → initialize #1",
        "2025-11-25 ← elicitation/create #",
        "2025-11-25 ← notifications/resources/updated",
    ):
        assert all(line in part for part in shown.split("The same over HTTP"))
    assert "Serving at http://127.0.0.1:" in shown
    assert "\x1b" not in shown


def test_with_as_little_as_there_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without network, without the extra for HTTP and over an empty folder: each is said in clear
    words, with what to install, and the rest goes on; no failure.
    """
    monkeypatch.setenv("INTERLOCK_WEATHER_URL", NOBODY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["--folder", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "! The weather service at 127.0.0.1:9 cannot be reached" in shown
    assert (
        "! HTTP is not shown: it needs the extra `http` (pip install 'interlock[http]')." in shown
    )
    assert "Over HTTP" not in shown
    assert "There are no files in" in shown
    assert "steps succeeded" in shown


def test_a_failure_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that cannot be started costs its part and the exit code, and no other part."""
    monkeypatch.setenv("INTERLOCK_WEATHER_URL", NOBODY)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(
        "interlock_servers.tour.walk.NEWEST", "2024-11-05"
    )  # under which a question cannot be asked
    assert main(["--folder", str(folder)]) == 1
    shown = capsys.readouterr().out
    assert "✗" in shown
    assert "steps failed" in shown
    assert "2025-11-25 ← elicitation/create" in shown


def test_a_folder_that_there_is_not(tmp_path: Path) -> None:
    """It is a usage error."""
    with pytest.raises(SystemExit) as ended:
        main(["--folder", str(tmp_path / "missing")])
    assert ended.value.code == 2


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What the person at the terminal will type; asked for more, the terminal has gone."""
    lines: list[str] = []

    def read(prompt: str) -> str:
        if not lines:
            raise EOFError
        return lines.pop(0)

    monkeypatch.setattr(builtins, "input", read)
    yield lines
    assert not lines


@pytest.mark.parametrize(
    "lines, answer",
    [
        (["3", "win", ""], ("accept", {"guests": 3, "seat": "window", "name": "Guest"})),
        (
            ["none", "99", "12", "x", "g", "Ada"],
            ("accept", {"guests": 12, "seat": "garden", "name": "Ada"}),
        ),
        (["3", "-"], ("decline", None)),
        ([], ("cancel", None)),
    ],
)
async def test_the_person_answers(
    typed: list[str], lines: list[str], answer: tuple[str, object]
) -> None:
    """Fields are asked one by one, checked, defaulted; a dash declines, and the end of the input
    cancels (`ELI-12`).
    """
    typed += lines
    person = AtTerminal(Stage(io.StringIO()))
    asked: list[types.ElicitResult] = []

    async def elicit(params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(await person.elicit(params))
        return asked[-1]

    async with Client(
        server, elicit=lambda p: elicit(p) if p.message.startswith("A table") else False
    ) as client:
        await client.call_tool("book_table", {"day": "Friday"})
    assert [(result.action, result.content) for result in asked] == [answer]


def test_a_plain_terminal() -> None:
    """Where the terminal has no Unicode the signs become ASCII, and nothing a server says can move
    the cursor.
    """
    raw = io.BytesIO()
    stage = Stage(io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    stage.done("well \x1b[2J\u202e é")
    Messages(stage)(
        "server",
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\u001b]0;x"}}',
    )
    shown = raw.getvalue().decode("ascii")
    assert "ok well" in shown
    assert "\x1b" not in shown
    assert "< notifications/message" in shown


def test_short_json() -> None:
    """Long texts, long lists and what every message repeats are cut."""
    value = {
        "resultType": "complete",
        "_meta": {"a": 1},
        "text": "x" * 100,
        "data": "AAAA",
        "list": [1, 2, 3, 4],
    }
    assert short(
        value
    ) == '{"text":"%s...","data":…,"list":[1,2,3,…],"resultType":"complete","_meta":…}' % ("x" * 60)
    assert short({"_meta": {"a": 1}}, meta=True) == '{"_meta":{"a":1}}'
