"""The mail server without an SMTP server: letters are checked, kept, found and thrown away, and
nobody is told that they were sent.
"""

from __future__ import annotations

import asyncio
import json
import mailbox
import os
import sys
from email import policy
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Client, McpError, Server, ToolError
from interlock.store import try_lock
from interlock_servers.mail import mail_server
from interlock_servers.mail import maildir as boxes_module
from interlock_servers.mail.maildir import Maildir
from interlock_servers.mail.messages import MOST_BODY, addresses, letter_of, written
from interlock_servers.mail.smtp import SmtpSender
from tests.servers.calendars import bytes_of
from tests.servers.calls import done, refusal, words

TOP = Path(__file__).parents[4]
AWAY = {
    "to": "team@work.com",
    "subject": "Out of Office",
    "body": "I am away from 15 to 22 June.\n",
}
SENDER = SmtpSender(senders=tuple(addresses("Ann Lee <ann@example.com>, ann@work.com", "from")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Maildir that is not there yet."""
    return tmp_path / "mail"


@pytest.fixture
def server(folder: Path) -> Server:
    """A server over that Maildir, with no SMTP server."""
    return mail_server(folder, SENDER)


async def ids(client: Client, tool: str, **arguments: Any) -> list[str]:
    """The ids that a list has."""
    return [letter["id"] for letter in (await done(client, tool, **arguments))["letters"]]


# -- what it offers --------------------------------------------------------------------------------


async def test_nobody_who_uses_it_is_broken(server: Server, interlock_catalogue: Any) -> None:
    """Tools, templates and the prompt are those of the snapshot (`TOL-02`, `RES-02`, `PRM-02`)."""
    assert not (await interlock_catalogue(server, "mail_catalogue.json")).breaking


async def test_every_tool_says_truly_what_it_does(client: Client) -> None:
    """Titles, output schemas, and hints by which a host may decide: sending reaches the world
    (`TOL-04`, `TOL-05`).
    """
    hints = {}
    for tool in await client.list_tools():
        assert all((tool.title, tool.description, tool.output_schema, tool.annotations)), tool.name
        said = tool.annotations
        assert said is not None
        hints[tool.name] = (said.read_only_hint, said.destructive_hint, said.open_world_hint)
    assert hints == {
        "send_mail": (False, False, True),
        "create_draft": (False, False, False),
        "list_drafts": (True, None, False),
        "send_draft": (False, True, True),
        "discard_draft": (False, True, False),
        "list_sent": (True, None, False),
        "search_mail": (True, None, False),
    }


async def test_what_only_reads_changes_nothing(client: Client, folder: Path) -> None:
    """Neither a tool that says so, nor a resource, nor a completion leaves a trace; no folder is
    made (`TOL-04`).
    """
    reading = [
        tool.name
        for tool in await client.list_tools()
        if tool.annotations and tool.annotations.read_only_hint
    ]
    given = {"search_mail": {"words": "away"}}
    for tool in reading:
        assert await ids(client, tool, **given.get(tool, {})) == []
    assert not folder.exists()
    sent = await done(client, "send_mail", **AWAY)
    draft = await done(client, "create_draft", **AWAY)
    before = bytes_of(folder)
    for tool in reading:
        assert await ids(client, tool, **given.get(tool, {}))
    for uri in (sent["uri"], draft["uri"]):
        await client.read_resource(uri)
    await client.complete("mail://sent/{id}", "id", "")
    assert bytes_of(folder) == before


# -- letters ---------------------------------------------------------------------------------------


async def test_the_mail_of_the_guide(client: Client, folder: Path) -> None:
    """It is kept as a letter that other programs read, and nobody is told that it went out."""
    result = await client.call_tool("send_mail", AWAY)
    assert result.text.startswith(
        "Not sent: no SMTP server is configured (INTERLOCK_SMTP_HOST). Stored in the local Maildir"
    )
    sent = result.structured_content
    assert (sent["how"], sent["to"], sent["from"]) == (
        "local",
        ["team@work.com"],
        "Ann Lee <ann@example.com>",
    )
    (message,) = mailbox.Maildir(folder, create=False).get_folder("Sent")
    assert (message["To"], message["From"], message["Subject"]) == (
        "team@work.com",
        "Ann Lee <ann@example.com>",
        "Out of Office",
    )
    assert message.get_payload() == AWAY["body"]
    assert (message.get_subdir(), message.get_flags(), message["X-Interlock-Sent"]) == (
        "cur",
        "S",
        "local",
    )
    (contents,) = (await client.read_resource(sent["uri"])).contents
    letter = json.loads(contents.text or "")
    assert (letter["body"], letter["sent"], letter["subject"]) == (
        AWAY["body"],
        "local",
        "Out of Office",
    )
    assert (await done(client, "list_sent"))["letters"][0]["sent"] == "local"


async def test_several_and_copies(client: Client) -> None:
    """Addresses come as a list or in one text, with names, each once; the text is kept in any
    script.
    """
    body = "Grüße, 旅行\n" + "x" * 2000 + "\n.\nFrom here on\n"
    sent = await done(
        client,
        "create_draft",
        to=["Bob Läufer <bob@example.com>", "eve@example.com, bob@EXAMPLE.com"],
        cc="Ann <ann@bücher.example>",
        subject="Ferien 旅行",
        body=body,
        **{"from": "ann@work.com"},
    )
    assert sent["to"] == ["Bob Läufer <bob@example.com>", "eve@example.com"]
    assert (sent["cc"], sent["from"], sent["subject"], sent["body"]) == (
        ["Ann <ann@xn--bcher-kva.example>"],
        "ann@work.com",
        "Ferien 旅行",
        body,
    )


@pytest.mark.parametrize(
    "given, words",
    [
        (
            {"to": "team@work.com\nBcc: eve@example.com"},
            "to: an address must be one line, but one has a line break",
        ),
        ({"to": ["a@b.example", "x\r\n@y.example"]}, "a line break"),
        (
            {"cc": "a@b.example\x00"},
            "cc: an address must be one line, but one has the control character 0x00",
        ),
        ({"from": "ann@example.com\nX: y"}, "from: an address must be one line"),
        (
            {"subject": "Hi\r\nBcc: eve@example.com"},
            "subject: it must be one line, but it has a line break",
        ),
        ({"subject": "Hi\u2028Bcc: eve@example.com"}, "a line break"),
        ({"subject": "x" * 501}, "subject"),
        ({"to": "team"}, "'team' is not an address"),
        ({"to": "team@"}, "is not an address"),
        ({"to": "a b@c.example"}, "is not an address"),
        ({"to": "a..b@c.example"}, "is not an address"),
        ({"to": "a@-b.example"}, "is not an address"),
        ({"to": "a@b..example"}, "is not an address"),
        ({"to": "a@[127.0.0.1]"}, "is not an address"),
        ({"to": "jürgen@b.example"}, "is not an address"),
        ({"to": "a@" + "ü" * 64 + ".example"}, "is not an address"),
        ({"to": "ann@b.example> eve@c.example"}, "is not an address"),
        ({"to": "Group: a@b.example;"}, "is not an address"),
        ({"to": "x" * 65 + "@b.example"}, "is not an address"),
        ({"to": []}, "to: no recipient"),
        ({"to": " "}, "to: no recipient"),
        (
            {"to": [f"a{n}@b.example" for n in range(50)], "cc": "c@b.example"},
            "50 recipients; this one has 51",
        ),
        ({"to": ", ".join(f"a{n}@b.example" for n in range(51))}, "at most 50 recipients"),
        (
            {"from": "eve@example.com"},
            "the sender must be ann@example.com, ann@work.com, not eve@example.com",
        ),
        ({"from": "ann@work.com, ann@example.com"}, "from: give one address"),
        ({"body": "a\0b"}, "body: it has a NUL"),
        ({"body": "x" * (MOST_BODY + 1)}, f"body: it has more than {MOST_BODY} bytes"),
        ({"bcc": "a@b.example"}, "bcc"),
    ],
)
@pytest.mark.parametrize("tool", ["send_mail", "create_draft"])
async def test_what_is_no_letter(
    client: Client, folder: Path, tool: str, given: dict[str, Any], words: str
) -> None:
    """Injected headers, bad addresses, and too much of anything: said in words, and nothing is kept
    (`TOL-16`, `TOL-23`).
    """
    assert words in await refusal(client, tool, **{**AWAY, **given})
    assert not folder.exists()


@given(st.lists(st.text(max_size=40), max_size=3), st.text(max_size=60), st.text(max_size=200))
def test_whatever_is_written_is_one_letter(to: list[str], subject: str, body: str) -> None:
    """Text that is taken makes a letter with the headers that were meant, and no others; all else
    is refused in words.
    """
    try:
        message = written([*to, "team@work.com"], subject, body, (), SENDER.senders[0])
    except ToolError:
        return
    data = message.as_bytes()
    read = BytesParser(policy=policy.default).parsebytes(data)
    assert set(read.keys()) <= {
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "Content-Type",
        "Content-Transfer-Encoding",
        "MIME-Version",
    }
    assert len(read.keys()) == len(set(read.keys()))
    assert data.isascii()
    assert "team@work.com" in str(read["To"])


@given(st.binary(max_size=300))
def test_whatever_lies_there_is_read(noise: bytes) -> None:
    """Letters of other programs, and what is none, surprise nobody."""
    for data in (
        noise,
        b"To: " + noise,
        b"Subject: " + noise,
        b"Content-Type: " + noise,
        b"Date: " + noise,
        b"From: a\r\n\r\n" + noise,
    ):
        json.dumps([letter_of(data, "x", "mail://sent/x", whole=True).body])


# -- drafts and boxes ------------------------------------------------------------------------------


async def test_a_draft_until_it_is_sent(client: Client) -> None:
    """It is listed and found, then sent as it is, and is a draft no longer."""
    draft = await done(client, "create_draft", **AWAY)
    assert draft["uri"] == f"mail://drafts/{draft['id']}"
    assert await ids(client, "list_drafts") == [draft["id"]]
    assert await ids(client, "list_sent") == []
    result = await client.call_tool("send_draft", {"draft": draft["id"]})
    assert result.text.startswith("Not sent")
    assert await ids(client, "list_drafts") == []
    (letter,) = (await done(client, "list_sent"))["letters"]
    assert (letter["subject"], letter["to"]) == ("Out of Office", ["team@work.com"])
    for tool in ("send_draft", "discard_draft"):
        assert "There is no draft with the id" in await refusal(client, tool, draft=draft["id"])
    with pytest.raises(McpError, match="not found"):
        await client.read_resource(draft["uri"])


async def test_a_draft_that_is_thrown_away(client: Client) -> None:
    """It is gone, and was not sent; who watches it is told (`SUB-01`)."""
    draft = await done(client, "create_draft", **AWAY)
    async with client.watch(resources=[draft["uri"]]) as changes:
        assert "Discarded" in (await client.call_tool("discard_draft", {"draft": draft["id"]})).text
        assert (await anext(changes)).uri == draft["uri"]
    assert await ids(client, "list_drafts") == await ids(client, "list_sent") == []
    for odd in ("../Sent/cur/x", "..", "/etc/passwd", "x\0y"):
        assert "There is no draft" in await refusal(client, "discard_draft", draft=odd)


async def test_a_draft_is_sent_by_one_alone(client: Client, folder: Path) -> None:
    """While one sends it, nobody else sends it or throws it away."""
    draft = await done(client, "create_draft", **AWAY)
    with Maildir(folder).claimed(draft["id"]) as data:
        assert data is not None
        for tool in ("send_draft", "discard_draft"):
            assert "is already being sent" in await refusal(client, tool, draft=draft["id"])
    results = await asyncio.gather(
        *(client.call_tool("send_draft", {"draft": draft["id"]}) for _ in range(8))
    )
    assert [bool(result.is_error) for result in results].count(False) == 1
    assert len(await ids(client, "list_sent")) == 1


async def test_a_draft_that_goes_at_the_last_moment(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waited for a draft that somebody else has sent meanwhile does not send it again."""
    draft = await done(client, "create_draft", **AWAY)

    def late(descriptor: int) -> bool:
        (path,) = (folder / ".Drafts" / "cur").iterdir()
        path.unlink()
        return try_lock(descriptor)

    monkeypatch.setattr(boxes_module, "try_lock", late)
    assert "There is no draft" in await refusal(client, "send_draft", draft=draft["id"])
    assert await ids(client, "list_sent") == []


async def test_letters_of_one_moment(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ids of their own, though the clock stands still."""
    monkeypatch.setattr(boxes_module.time, "time_ns", lambda: 1_700_000_000_000_000_000)
    found = {(await done(client, "create_draft", **AWAY))["id"] for _ in range(3)}
    assert set(await ids(client, "list_drafts")) == found
    assert len(found) == 3


async def test_lists_and_searching(client: Client) -> None:
    """The latest first, as many as are wanted; all words have to be there, in any case and any
    part.
    """
    letters = [
        await done(
            client,
            "send_mail",
            to=f"friend{n}@example.com",
            subject=f"Letter {n}",
            body=f"Barcelona ÜBER {n % 2}",
        )
        for n in range(5)
    ]
    sent = [letter["id"] for letter in reversed(letters)]
    draft = await done(client, "create_draft", to="x@example.com", subject="Plan", body="barcelona")
    assert await ids(client, "list_sent") == sent
    short = await done(client, "list_sent", limit=2)
    assert ([letter["id"] for letter in short["letters"]], short["complete"]) == (sent[:2], False)
    assert await ids(client, "search_mail", words="barcelona") == [draft["id"], *sent]
    assert await ids(client, "search_mail", words="über 1 barcelona LETTER") == [sent[1], sent[3]]
    assert await ids(client, "search_mail", words="friend3@") == [sent[1]]
    assert await ids(client, "search_mail", words="nowhere") == []
    assert "words" in await refusal(client, "search_mail", words="")


async def test_completion(client: Client) -> None:
    """Ids of letters, and colleagues to whom one has written (`CMP-02`, `CMP-03`)."""
    sent = await done(
        client, "send_mail", **{**AWAY, "to": "Bob May <bob@example.com>", "cc": "eve@example.com"}
    )
    draft = await done(client, "create_draft", **AWAY)
    assert (await client.complete("mail://sent/{id}", "id", sent["id"][:4])).values == [sent["id"]]
    assert (await client.complete("mail://drafts/{id}", "id", "")).values == [draft["id"]]
    assert (await client.complete("mail://drafts/{id}", "id", "x")).values == []
    assert (await client.complete("out-of-office", "colleague", "b")).values == [
        "Bob May <bob@example.com>"
    ]


async def test_the_prompt(client: Client) -> None:
    """Days and a colleague in, one request to write out; what is no day is refused (`PRM-02`,
    `PRM-05`).
    """
    prompt = await client.get_prompt(
        "out-of-office", {"first_day": "2024-06-15", "last_day": "2024-06-22", "colleague": "Bob"}
    )
    text = str(prompt.messages[0].content)
    assert "from 15 June 2024 to 22 June 2024" in text
    assert "Bob helps meanwhile" in text
    alone = await client.get_prompt(
        "out-of-office", {"first_day": "2024-06-15", "last_day": "2024-06-22"}
    )
    assert "Nobody covers for me" in str(alone.messages[0].content)
    with pytest.raises(McpError, match="first_day"):
        await client.get_prompt("out-of-office", {"first_day": "June", "last_day": "2024-06-22"})
    with pytest.raises(McpError, match="before"):
        await client.get_prompt(
            "out-of-office", {"first_day": "2024-06-22", "last_day": "2024-06-15"}
        )


async def test_letters_of_other_programs(client: Client, folder: Path) -> None:
    """A Maildir that others fill is shown as far as it can be, and a draft of theirs can be
    sent.
    """
    await done(client, "create_draft", **AWAY)
    drafts = mailbox.Maildir(folder, create=False).get_folder("Drafts")
    html = (
        b"To: bob@example.com\nSubject: =?utf-8?q?=C3=BC?=\nContent-Type: text/html; "
        b"charset=klingon\n\n<b>hi</b>"
    )
    theirs = drafts.add(html)
    nobody = drafts.add(b"Subject: no one\n\nhm")
    assert set(await ids(client, "list_drafts")) >= {theirs, nobody}
    (contents,) = (await client.read_resource(f"mail://drafts/{theirs}")).contents
    letter = json.loads(contents.text or "")
    assert (letter["subject"], letter["body"]) == (
        "ü",
        "(This part of the message cannot be read.)",
    )
    sent = await done(client, "send_draft", draft=theirs)
    assert (sent["to"], sent["from"]) == (["bob@example.com"], "Ann Lee <ann@example.com>")
    assert "has no recipient" in await refusal(client, "send_draft", draft=nobody)
    many = ", ".join(f"a{n}@b.example" for n in range(51)).encode()
    for headers, why in (
        (b"Bcc: " + many, "at most 50 recipients"),
        (b"To: a@b.example\nFrom: eve@example.com", "not eve@example.com"),
    ):
        odd = drafts.add(headers + b"\n\nhm")
        assert why in await refusal(client, "send_draft", draft=odd)
        assert odd in await ids(client, "list_drafts")


async def test_a_disk_that_is_full(
    client: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is half kept, and nobody is told that it was kept."""
    await done(client, "create_draft", **AWAY)
    before = {
        name: data for name, data in bytes_of(folder).items() if not name.endswith("maildirfolder")
    }

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert "cannot be written to (No space left on device)" in await refusal(
        client, "send_mail", **AWAY
    )
    assert {
        name: data for name, data in bytes_of(folder).items() if not name.endswith("maildirfolder")
    } == before


def test_the_folder_is_the_one_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable's, or one among the user's data."""
    monkeypatch.setenv(boxes_module.FOLDER_VARIABLE, str(tmp_path / "a"))
    assert Maildir().folder == tmp_path / "a"
    monkeypatch.delenv(boxes_module.FOLDER_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "data"))
    if sys.platform != "darwin":
        assert Maildir().folder == tmp_path / "data" / "interlock" / "mail"


WRITER = """
import asyncio, sys
from interlock import Client
from interlock_servers.mail import mail_server

async def main(folder, name):
    async with Client(mail_server(folder)) as client:
        calls = [
            client.call_tool(tool, {"to": "team@work.com", "subject": f"{name}-{n}", "body": "x"})
            for n in range(20) for tool in ("send_mail", "create_draft")
        ]
        assert not any(result.is_error for result in await asyncio.gather(*calls))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


async def test_two_processes_lose_nothing(folder: Path, tmp_path: Path) -> None:
    """Both write into one Maildir at the same time, each from many threads; all letters of both are
    there, and the folder is new to both.
    """
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(folder), name, cwd=TOP
        )
        for name in ("a", "b")
    ]
    assert [await process.wait() for process in processes] == [0, 0]
    for box in ("sent", "drafts"):
        found = [letter.subject for letter in Maildir(folder).letters(box)]
        assert sorted(found) == sorted(f"{name}-{n}" for name in "ab" for n in range(20))


async def test_older_clients_read_it_in_words(server: Server) -> None:
    """A peer that knows no structured content finds ids, and how a letter was sent, in the text
    (`TOL-11`).
    """
    async with Client(server, revision="2024-11-05") as client:
        assert "[" in await words(client, "create_draft", **AWAY)
        draft = (await words(client, "list_drafts")).rpartition("id ")[2].rstrip("]")
        assert "Not sent" in await words(client, "send_draft", draft=draft)
        assert ", local; id " in await words(client, "list_sent")
