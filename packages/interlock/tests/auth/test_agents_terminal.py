"""Log-in at a terminal: a real pseudo-terminal, and a person who pastes."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

import pytest

from interlock import types as t
from interlock.auth.agents import Terminal
from interlock.auth.agents.keyboard import TypedLine, read_line
from interlock.auth.oauth.errors import Denied, Unauthorized
from interlock.auth.oauth.steps import ShowCode

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are of Unix", allow_module_level=True)

import pty
import termios

URL = "https://as.example/authorize?client_id=c&state=right"
BACK = "http://127.0.0.1:4711/callback"


@dataclass
class FakeTerminal:
    """A terminal with a person at it: what they are told, what they see of their typing."""

    keys: int
    stdin: TextIO
    said: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    pasting: list[threading.Thread] = field(default_factory=list)
    answers: list[bytes] = field(default_factory=list)

    def terminal(self, **options) -> Terminal:
        """A Terminal at this desk."""
        return Terminal(stdin=self.stdin, say=self._say, show=self.shown.append, **options)

    def settings(self) -> list:
        """How the terminal is set."""
        return termios.tcgetattr(self.stdin.fileno())

    def _say(self, line: str) -> None:
        self.said.append(line)
        if line.endswith(":") and self.answers:
            asyncio.get_running_loop().call_soon(
                self._paste, self.answers.pop(0)
            )  # once the terminal is waited for

    def _paste(self, text: bytes) -> None:
        thread = threading.Thread(target=os.write, args=(self.keys, text))
        thread.start()
        self.pasting.append(thread)


@pytest.fixture
def fake() -> Iterator[FakeTerminal]:
    """A desk, cleared afterwards; the terminal must be as it was."""
    keys, end = pty.openpty()
    with os.fdopen(end, "r", encoding="utf-8") as stdin:
        fake = FakeTerminal(keys, stdin)
        before = fake.settings()
        yield fake
        for thread in fake.pasting:
            thread.join(10)
        assert fake.settings() == before
    os.close(keys)


async def visit(fake: FakeTerminal, *answers: bytes, url: str = URL, **options) -> str:
    """What a visit gives, where this is typed, each once it was asked for."""
    fake.answers = list(answers)
    got = await fake.terminal(**options).visit(url, BACK)
    assert fake.answers == []
    assert not asyncio.get_running_loop().remove_reader(fake.stdin.fileno())
    return got


@pytest.mark.parametrize(
    "pasted, query",
    [
        (b"http://127.0.0.1:4711/callback?code=abc&state=right&iss=https%3A%2F%2Fas.example\r",
            "code=abc&state=right&iss=https%3A%2F%2Fas.example"),
        (b"  http://127.0.0.1:4711/callback?code=abc&state=right#top \n", "code=abc&state=right"),
        (b"?code=abc&state=right\r", "code=abc&state=right"),
        (b"code=abc&state=right\r", "code=abc&state=right"),
        (b"127.0.0.1:4711/callback?code=abc&state=right\r", "code=abc&state=right"),
        (b"http://127.0.0.1:4711/callback?error=access_denied&state=right\r",
            "error=access_denied&state=right"),
        (b"4/0AX4Xf-WgH\r", "code=4%2F0AX4Xf-WgH&state=right"),
        (b"YWJj==\r", "code=YWJj%3D%3D&state=right"),
        (b"\x1b[200~?code=abc&state=right\x1b[201~\r", "code=abc&state=right"),
        (b"?code=abX\x7fc&state=right\r", "code=abc&state=right"),
        (b"nonsense\x15?code=abc&state=right\r", "code=abc&state=right"),
    ],
)  # fmt: skip
async def test_a_code_or_the_whole_address_is_pasted(fake: FakeTerminal, pasted: bytes, query: str):
    """`AUT-13`: what was pasted becomes the query string that the dance judges.

    A bare code is the person's own word for whose it is.
    """
    assert await visit(fake, pasted) == query
    assert f"To log in, visit this address in any browser:\n\n{URL}\n" in fake.said
    assert BACK in fake.said[1]


async def test_an_empty_line_is_no_answer_and_no_fault(fake: FakeTerminal):
    """Enter by itself changes nothing."""
    entered = asyncio.Event()
    terminal = Terminal(stdin=fake.stdin, say=fake.said.append, show=lambda text: entered.set())
    task = asyncio.create_task(terminal.visit(URL, BACK))
    await asyncio.sleep(0)
    os.write(fake.keys, b"\r")
    await entered.wait()
    os.write(fake.keys, b"?code=abc&state=right\r")
    assert await task == "code=abc&state=right"
    assert len(fake.said) == 2


async def test_a_very_long_address_arrives_whole(fake: FakeTerminal):
    """A terminal that gathers lines itself would cut it after 4,096 characters, or 1,024."""
    query = f"code={'c' * 20_000}&state=right"
    assert await visit(fake, f"{BACK}?{query}\r".encode()) == query
    assert "".join(fake.shown) == f"{BACK}?{query}\n"


async def test_an_address_without_an_answer_or_of_another_log_in_is_asked_for_again(
    fake: FakeTerminal,
):
    """A forged or older address does not end the log-in (`AUT-13`)."""
    other = b"http://127.0.0.1:4711/callback?code=evil&state=wrong\r"
    none = b"https://as.example/authorize?client_id=c&state=right\r"
    assert await visit(fake, other, none, b"?code=good&state=right\r") == "code=good&state=right"
    assert fake.said[2] == (
        "That is the answer to another log-in. Visit the address above, and paste the "
        "address that the browser shows at the end:"
    )
    assert (
        fake.said[3]
        == "That has no code in it. Paste the whole address that the browser shows at the "
        "end:"
    )


@pytest.mark.parametrize("ending", [b"\x04", b"\x7f\x04"])
async def test_who_ends_the_input_says_no(fake: FakeTerminal, ending: bytes):
    """Ctrl-D is a no."""
    with pytest.raises(Denied, match="the input ended"):
        await visit(fake, ending)


async def test_a_terminal_that_goes_away_ends_the_visit():
    """A closed window is a no as well."""
    keys, end = pty.openpty()
    with os.fdopen(end, "r", encoding="utf-8") as stdin:
        task = asyncio.create_task(
            Terminal(stdin=stdin, say=lambda line: None, show=lambda text: None).visit(URL, BACK)
        )
        await asyncio.sleep(0)
        os.close(keys)
        with pytest.raises(Denied):
            await task


async def test_a_visit_that_is_cancelled_leaves_nothing_behind(fake: FakeTerminal):
    """No thread, no reader, and the terminal as it was.

    What is typed then is for the next who asks.
    """
    threads = threading.active_count()
    before = fake.settings()
    task = asyncio.create_task(fake.terminal().visit(URL, BACK))
    await asyncio.sleep(0)
    assert fake.settings() != before
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert fake.settings() == before
    assert threading.active_count() == threads
    assert not asyncio.get_running_loop().remove_reader(fake.stdin.fileno())
    os.write(fake.keys, b"for the shell\n")
    assert fake.stdin.readline() == "for the shell\n"


async def test_nobody_pasted_in_time(fake: FakeTerminal):
    """After the seconds are over there are words."""
    with pytest.raises(t.TimedOut, match="nothing was pasted"):
        await visit(fake, seconds=0)


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://as.example/?state=right",
        "https://as.example/\x1b[2J",
        "file:///etc/passwd",
    ],
)
async def test_only_https_and_loopback_addresses_are_shown(fake: FakeTerminal, url: str):
    """`SEC-20`, `SEC-21`: nothing is shown that a person should not visit, or that would steer
    their terminal.
    """
    with pytest.raises(Unauthorized):
        await visit(fake, url=url)
    assert "".join(fake.said).isprintable()


async def test_a_code_for_another_device_is_shown(fake: FakeTerminal):
    """RFC 8628, 3.3: the code, where to enter it, and the address that has it already."""
    await fake.terminal().show_code(
        ShowCode(
            "WDJB-MJHT",
            "https://as.example/device",
            "https://as.example/device?user_code=WDJB-MJHT",
            59,
        )
    )
    assert fake.said == [
        "To log in, visit https://as.example/device on any device, and enter the code WDJB-MJHT",
        "or visit https://as.example/device?user_code=WDJB-MJHT and compare the code.",
        "It is valid for 1 minute.",
    ]


async def test_the_redirect_uri_needs_nobody_who_listens(fake: FakeTerminal):
    """`AUT-14`: the one that is registered, else one of loopback."""
    terminal = fake.terminal()
    assert (await terminal.listen(())).startswith("http://127.0.0.1:")
    assert (
        await terminal.listen(["https://app.example/cb", "http://localhost:5/cb"])
        == "http://localhost:5/cb"
    )
    assert (
        await fake.terminal(redirect_uri="https://app.example/cb").listen([BACK])
        == "https://app.example/cb"
    )
    with pytest.raises(ValueError, match="redirect URI"):
        Terminal(redirect_uri="http://app.example/cb")
    await terminal.aclose()


async def test_without_a_terminal_that_is_said(monkeypatch: pytest.MonkeyPatch):
    """A program that was started without stdin has nothing to paste at."""
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(Unauthorized, match="there is no terminal to paste the answer into"):
        await Terminal(say=lambda line: None).visit(URL, BACK)


async def test_lines_come_from_files_and_pipes_too(tmp_path):
    """A script may pipe the address in, or hand it in as a file; the end of it is the end."""
    (tmp_path / "typed").write_text("one\n")
    file = os.open(tmp_path / "typed", os.O_RDONLY)
    assert await read_line(file, lambda text: None) == "one"
    with pytest.raises(EOFError):
        await read_line(file, lambda text: None)
    os.close(file)
    out, into = os.pipe()
    os.write(into, b"two\n")
    assert await read_line(out, lambda text: None) == "two"
    os.close(into)
    with pytest.raises(EOFError):
        await read_line(out, lambda text: None)
    os.close(out)


def test_what_is_typed_is_bounded_and_shown_without_steering_anything():
    """No more than 64 KiB are kept, and nothing is echoed that a terminal would obey."""
    shown: list[str] = []
    typed = TypedLine(shown.append)
    assert typed.feed("é\x1b[2J\x07ok".encode()) is None
    assert typed.text == "éok"
    assert "".join(shown) == "???[2Jok"
    typed.feed(b"x" * 100_000)
    assert len(typed.text) < 64 * 1024
