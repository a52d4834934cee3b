"""Questions of a server, answered from the command line or by a person; and where nobody can,
nothing is done.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import at_terminal

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
SEAT = {"row": 3, "side": "aisle"}

ANSWERED: list[tuple[str, list[str], str]] = [
    ("confirm", ["--yes"], "yes"),
    ("confirm", ["--answers", '{"confirm": true}'], "yes"),
    ("confirm", ["--answers", '{"confirm": false}'], "no"),
    ("confirm", ["--answers", "[true]"], "yes"),
    ("book", ["--yes", "--answers", json.dumps(SEAT)], "3 aisle none False"),
    (
        "book",
        ["--answers", json.dumps({**SEAT, "confirm": True, "meal": "soup", "quiet": True})],
        "3 aisle soup True",
    ),
    ("book", ["--answers", json.dumps([SEAT, True])], "3 aisle none False"),
    ("book", ["--answers", json.dumps([SEAT, {"confirm": False}])], "nothing booked"),
    ("book", ["--answers", json.dumps([SEAT]), "--yes"], "3 aisle none False"),
    ("sign_in", ["--yes"], "signed in"),
    ("sign_in", ["--answers", "[true]"], "signed in"),
]
UNANSWERED: list[tuple[str, list[str], str]] = [
    ("confirm", [], "Really?"),
    ("confirm", ["--answers", '{"other": 1}'], "has no answer to it"),
    ("confirm", ["--answers", "[]"], "has no answer to it"),
    ("book", ["--yes"], "row, side have no default and no value was given"),
    ("book", ["--yes", "--answers", '{"row": 3}'], "side has no default and no value was given"),
    ("book", [], "--yes is not enough, because row, side have no default."),
    ("confirm", ["--answers", "{}"], "or take the defaults with --yes."),
    ("book", ["--answers", '{"row": 3}'], "no value was given for side"),
    ("book", ["--answers", '{"row": 3, "side": "roof"}'], "side"),
    ("book", ["--answers", '[{"row": "three", "side": "aisle"}]'], "row"),
    ("book", ["--answers", '[{"row": 3}]'], "the answer has no value for side"),
    ("book", ["--answers", json.dumps([SEAT])], "Book row 3?"),
    ("sign_in", ["--answers", '{"a": 1}'], "asks to open https://example.com/sign-in"),
]
REFUSED: list[tuple[str, list[str], str]] = [
    ("book", ["--answers", "[false]"], "declined"),
    ("book", ["--answers", "[null]"], "dismissed"),
    ("sign_in", ["--answers", "[false]"], "declined"),
]


@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize("tool, options, expected", ANSWERED)
def test_answered_from_the_command_line(
    interlock: Command,
    questions_address: str,
    tool: str,
    options: list[str],
    expected: str,
    revision: str,
) -> None:
    """By field for all questions, in order, or with yes and the defaults; alike in both eras
    (`ELI-12`, `ELI-13`).
    """
    result = interlock("call", questions_address, tool, *options, "--revision", revision)
    assert (result.exit_code, result.stdout) == (0, f"{expected}\n"), result.stderr


@pytest.mark.matrix(pairs=False, seconds=0.2)
@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
@pytest.mark.parametrize("tool, options, words", UNANSWERED)
def test_unanswered_is_code_2_and_says_how(
    interlock: Command,
    questions_address: str,
    tool: str,
    options: list[str],
    words: str,
    revision: str,
) -> None:
    """Nothing is answered in a person's stead: the call is given up, and the question is shown with
    an example.
    """
    result = interlock("call", questions_address, tool, *options, "--revision", revision)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert "--yes" in result.stderr


@pytest.mark.parametrize("tool, options, words", REFUSED)
def test_no_is_an_answer(
    interlock: Command, questions_address: str, tool: str, options: list[str], words: str
) -> None:
    """The tool ends with its own words: code 1."""
    result = interlock("call", questions_address, tool, *options)
    assert result.exit_code == 1
    assert words in result.stdout


def test_yes_is_not_advised_to_who_has_said_it(interlock: Command, questions_address: str) -> None:
    """It names the fields without a default; what is left to say is --answers."""
    result = interlock("call", questions_address, "book", "--yes")
    assert "--answers" in result.stderr
    assert "or take the defaults" not in result.stderr


def test_unanswered_for_machines(interlock: Command, questions: Path, tmp_path: Path) -> None:
    """One document on stdout; and answers may come from a file."""
    result = interlock("call", questions, "confirm", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["kind"] == "unanswered"
    (tmp_path / "answers.json").write_text('{"confirm": true}')
    data: dict[str, Any] = json.loads(
        interlock(
            "call", questions, "confirm", "--answers", f"@{tmp_path}/answers.json", "--json"
        ).stdout
    )
    assert data["content"] == [{"type": "text", "text": "yes"}]


def test_a_person_fills_in_a_form(questions_address: str, home: Path) -> None:
    """Field by field with what each takes; what does not fit is asked again; defaults by return; a
    last look before it goes.
    """
    shown, code = at_terminal(
        ["call", questions_address, "book"],
        [
            ("row: a whole number\r\n", "ten\n"),
            ("This must be a whole number.", ""),
            ("row: ", "10\n"),
            ("one of aisle, window", "window\n"),
            ("meal [none]: ", "\n"),
            ("quiet [y/N]: ", "\n"),
            ("Send this?", "a\n"),
            ("row: a whole number", "11\n"),
            ("one of aisle, window", "aisle\n"),
            ("meal [none]: ", "fish\n"),
            ("quiet [y/N]: ", "y\n"),
            ("Send this?", "y\n"),
            ("Book row 11?", ""),
            ("Yes [y/N]: ", "y\n"),
        ],
    )
    assert code == 0
    assert shown.splitlines()[-1] == "11 aisle fish True"


@pytest.mark.parametrize(
    "tool, answers, code, words",
    [
        ("confirm", [("Yes [y/N]: ", "\n")], 0, "no"),
        (
            "confirm",
            [("Yes [y/N]: ", "maybe\n"), ("Please answer y or n.", ""), ("Yes [y/N]: ", "y\n")],
            0,
            "yes",
        ),
        ("confirm", [("Yes [y/N]: ", "\x04")], 0, "no"),
        (
            "book",
            [("row: a whole number", "\x04")],
            1,
            "The user dismissed the question: Which seat?",
        ),
        (
            "book",
            [
                ("row: a whole number", "1\n"),
                ("aisle, window", "aisle\n"),
                ("meal", "\n"),
                ("quiet", "\n"),
                ("Send", "n\n"),
            ],
            1,
            "declined",
        ),
        (
            "sign_in",
            [
                ("visit example.com: Sign in first.", ""),
                ("https://example.com/sign-in", ""),
                ("[y/n]: ", "y\n"),
            ],
            0,
            "signed in",
        ),
        ("sign_in", [("[y/n]: ", "n\n")], 1, "declined"),
    ],
)
def test_a_person_may_say_no(
    questions_address: str,
    home: Path,
    tool: str,
    answers: list[tuple[str, str]],
    code: int,
    words: str,
) -> None:
    """No, nothing (Ctrl-D), or yes to an address, which is shown whole with its host (`ELI-25`,
    `ELI-26`).
    """
    shown, found = at_terminal(["call", questions_address, tool], answers)
    assert found == code, shown
    assert words in shown.splitlines()[-1]


def test_an_interrupt_at_a_prompt(questions_address: str, home: Path) -> None:
    """Ctrl-C ends the command at once: nothing waits for a line that nobody will type."""
    shown, code = at_terminal(["call", questions_address, "confirm"], [("Yes [y/N]: ", "\x03")])
    assert code == 130
    assert shown.splitlines()[-1] == "Interrupted."


def test_a_terminal_gets_no_control_characters_and_no_binary(
    everyday_address: str, home: Path
) -> None:
    """What a stranger sends cannot move the cursor or ring the bell; bytes are for files; colours
    are ours.
    """
    shown, code = at_terminal(["call", everyday_address, "bell"], [])
    assert (shown, code) == ("⟨U+001B⟩[31mred⟨U+0007⟩\n", 0)
    shown, code = at_terminal(["read", everyday_address, "photo://one"], [])
    assert code == 2
    assert "photo://one is image/jpeg, 4 bytes, which a terminal cannot show." in shown
    shown, code = at_terminal(["call", everyday_address, "work"], [])
    assert "[############............]  50% half" in shown
    assert shown.endswith("worked\n")
    assert "\x1b[36m  add\x1b[0m" in at_terminal(["list", everyday_address, "--tools"], [])[0]
