"""The terminal face at a real terminal: the holiday of the demo from its prompt to the mail, and
what goes otherwise.
"""

from __future__ import annotations

import email
import email.policy
import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.chatting import Terminal

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")


def children_of(process: int) -> list[str]:
    """The processes that a process has started."""
    listed = subprocess.run(
        ["ps", "-e", "-o", "ppid=,pid="], capture_output=True, text=True, check=True
    ).stdout
    return [line.split()[1] for line in listed.splitlines() if line.split()[0] == str(process)]


def demo(folder: Path, **options: int) -> Terminal:
    """The demo in the terminal, with its files in a folder."""
    return Terminal(["demo", "--terminal", "--fresh", "--folder", str(folder)], **options)


PLAN = (
    "/plan-vacation destination=Barcelona departure_date=2024-06-15 return_date=2024-06-22 "
    "budget=3000 travelers=2"
)


def bookings(folder: Path) -> list[tuple[object, ...]]:
    with sqlite3.connect(f"file:{folder / 'travel.db'}?mode=ro", uri=True) as base:
        return base.execute("SELECT * FROM bookings").fetchall()


def fill(chat: Terminal, field: str, text: str) -> None:
    """Type into a field of a form."""
    chat.see(re.escape(field))
    chat.answer(r"❯", f"{text}\r")


@pytest.mark.slow
def test_the_holiday_from_prompt_to_mail(home: Path, tmp_path: Path) -> None:
    """The scenario of the seeds in the terminal: prompt with completion, resource, approvals, two
    samplings, two forms; then the disk.
    """
    folder = tmp_path / "demo"
    with demo(folder) as chat:
        chat.answer(r"❯", "/plan")
        chat.answer(r"Plan a vacation", "\t")
        chat.answer(r"plan-vacation", "\r")
        chat.type(" destination=Barc")
        chat.answer(r"Barcelona", "\t")
        chat.answer(r"elona", "\r")
        chat.type(
            " departure_date=2024-06-15 return_date=2024-06-22 budget=3000 travelers=2 @europe"
        )
        chat.answer(r"preferences", "\t\r\r")
        chat.see(r"Destination: Barcelona")
        chat.see(r"@ travel: travel://preferences/europe")
        chat.answer(r"y send", "y")
        servers = children_of(chat.process.pid)
        assert len(servers) == 4

        for _ in range(2):  # the flight there, and the one back
            chat.see(r"travel wants to ask a model")
            chat.answer(r"y ask the model", "y")
            chat.see(r"travel gets this answer from planner")
            chat.answer(r"y give it", "y")

        chat.see(r"travel may be asked to run book_trip")
        chat.answer(r"y once", "d")
        chat.see(r"trusted\s+server")
        chat.answer(r"y once", "y")

        chat.see(r"Please confirm the booking details")
        chat.answer(r"f fill in", "f")
        fill(chat, "Confirm the booking", "maybe")
        fill(chat, "Please answer yes or no", "\x15yes")
        fill(chat, "2/4 ", "window")
        fill(chat, "3/4 ", "2")
        fill(chat, "4/4 ", "\x15yes")
        chat.see(r"This would be sent:")
        chat.answer(r"y send", "y")
        chat.see(r"Who travels, and where does the confirmation go")
        chat.answer(r"f fill in", "f")
        fill(chat, "1/4 ", "Ann")
        fill(chat, "2/4 ", "ann at example")
        fill(chat, "such as name@example.com", "\x15ann@example.com")
        fill(chat, "3/4 ", "")
        fill(chat, "4/4 ", "a quiet room")
        chat.see(r"Phone: \(left out\)")
        chat.answer(r"y send", "y")

        chat.see(r"make 2 calls at once")
        chat.see(r"create_event of calendar")
        chat.see(r"send_mail of mail")
        chat.answer(r"y all 2 once", "y")
        chat.see(r"Your trip to Barcelona is booked")
        chat.see(r"BK-2024-0001")
        chat.answer(r"❯", "\x04")
        assert chat.end() == 0
        chat.keep("terminal-journey")
        assert chat.text.rstrip().endswith("Ended.")
    (booking,) = bookings(folder)
    assert "BK-2024-0001" in map(str, booking)
    calendar = (folder / "calendar" / "my-calendar.ics").read_text(encoding="utf-8")
    assert "SUMMARY:Barcelona Trip" in calendar
    assert "DTSTART;VALUE=DATE:20240615" in calendar
    (mail,) = [
        path
        for path in (folder / "mail" / ".Sent").rglob("*")
        if path.parent.name in ("new", "cur")
    ]
    letter = email.message_from_bytes(mail.read_bytes(), policy=email.policy.default)
    assert letter["To"] == "ann@example.com"
    assert "BK-2024-0001" in str(letter["Subject"])
    assert not any(Path(f"/proc/{pid}").exists() for pid in servers)


@pytest.mark.slow
def test_nothing_is_booked_without_the_person(home: Path, tmp_path: Path) -> None:
    """Denied at the call, declined at the form, kept back and given up by Ctrl-C: each time nothing
    is booked, and the chat goes on.
    """
    folder = tmp_path / "demo"
    with demo(folder) as chat:
        chat.answer(r"❯", f"{PLAN}\r")
        chat.answer(r"y send", "y")
        chat.answer(r"y ask the model", "s")
        chat.answer(r"y give it", "y")
        chat.see(r"travel may be asked to run book_trip")
        chat.answer(r"y once", "n")
        chat.answer(r"Why not", "too dear\r")
        chat.see(r"✗ travel · Book a trip")
        chat.see(r"Nothing was booked\..*too dear")

        chat.answer(r"❯", f"{PLAN}\r")
        chat.answer(r"y send", "y")
        chat.see(r"travel may be asked to run book_trip")
        chat.answer(r"y once", "s")
        chat.see(r"Please confirm the booking details")
        chat.answer(r"f fill in", "d")
        chat.see(r"Nothing was booked")

        chat.answer(r"❯", "/new\r")
        chat.answer(r"You talk with[^❯]*❯", f"{PLAN}\r")
        chat.answer(r"y send", "y")
        chat.answer(r"y ask the model", "\x03")
        chat.see(r"The turn ended")
        chat.answer(r"❯", "/quit\r")
        assert chat.end() == 0
        chat.keep("terminal-refused")
    assert bookings(folder) == []
    assert not any(
        "Barcelona" in path.read_text(encoding="utf-8")
        for path in (folder / "calendar").glob("*.ics")
    )
    assert not [path for path in (folder / "mail").rglob("*") if path.parent.name in ("new", "cur")]


def chatting(home: Path, server: Path, **env: str) -> Terminal:
    """The chat with a server in a file, and the rule-based model."""
    command = {"command": sys.executable, "args": ["-P", "-m", "interlock", "run", str(server)]}
    config = home / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"everyday": command}}), encoding="utf-8")
    return Terminal(["chat", "--config", str(config), "--model", "planner"], env=env, columns=200)


def test_a_chat_of_ones_own(home: Path, everyday: Path) -> None:
    """`SEC-17`: the start is asked about, with the whole command; prompts are completed; what was
    typed is kept for this person alone.
    """
    with chatting(home, everyday, NO_COLOR="1") as chat:
        chat.see(r"everyday would be started with this command")
        chat.see(r"-m interlock run\s+" + re.escape(str(everyday)))
        chat.answer(r"y start it", "y")
        chat.see(r"everyday up")
        chat.answer(r"❯", "/greet style=p name=king")
        chat.type("\r")
        chat.see(r"Greet king in a p way")
        chat.answer(r"n do not", "n")
        chat.answer(r"❯", "/read @note://milk\r")
        chat.see(r"a note on milk")
        (server,) = children_of(chat.process.pid)
        chat.answer(r"❯", "\x04")
        assert chat.end() == 0
        assert not re.search(rb"\x1b\[(?:\d+;)*(?:3|4|9|10)[0-7](?:;\d+)*m", chat.raw)  # NO_COLOR
    (history,) = home.rglob("history")
    assert "+/greet style=p name=king" in history.read_text(encoding="utf-8")
    assert history.stat().st_mode & 0o777 == 0o600
    assert not Path(f"/proc/{server}").exists()


def test_who_closes_the_window_leaves_no_process(home: Path, everyday: Path) -> None:
    """Without a terminal there is no chat, and no server of it."""
    with chatting(home, everyday) as chat:
        chat.answer(r"y start it", "y")
        chat.see(r"everyday up")
        chat.see(r"❯")
        (server,) = children_of(chat.process.pid)
        chat.hang_up()
        chat.process.wait(timeout=30)
    assert not Path(f"/proc/{server}").exists()
