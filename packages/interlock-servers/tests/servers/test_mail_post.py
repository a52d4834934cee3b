"""The mail server with an SMTP server: letters go out, safely, and whatever that server does is
told truly.
"""

from __future__ import annotations

import base64
import socket
from email import policy
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, ToolError
from interlock_servers.mail import mail_server
from interlock_servers.mail.maildir import Maildir
from interlock_servers.mail.smtp import SmtpSender
from tests.servers.post_office import PASSWORD, USER, PostOffice, certificate, post_office

LETTER = {
    "to": ["team@work.com", "bob@example.com"],
    "cc": "eve@example.com",
    "subject": "Später",
    "body": "Grüße\n.\nbye\n",
}


@pytest.fixture
def pem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A certificate for loopback that this process trusts."""
    path = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    return path


def environment(office: PostOffice, **more: str) -> dict[str, str]:
    """The variables that lead to a server."""
    given = {
        "INTERLOCK_SMTP_HOST": "127.0.0.1",
        "INTERLOCK_SMTP_PORT": str(office.port),
        "INTERLOCK_MAIL_FROM": "Ann <ann@example.com>",
    }
    return {**given, "INTERLOCK_SMTP_TLS": "none", "INTERLOCK_SMTP_SECONDS": "10", **more}


async def send(
    office: PostOffice, folder: Path, letter: dict[str, Any] | None = None, **more: str
) -> tuple[bool, str, Any]:
    """Whether the call failed, its text and its data."""
    async with Client(
        mail_server(folder, SmtpSender.from_environment(environment(office, **more)))
    ) as client:
        await client.list_tools()
        result = await client.call_tool("send_mail", letter or LETTER)
        return bool(result.is_error), result.text, result.structured_content


def kept(folder: Path) -> list[tuple[str, str]]:
    """Subject and manner of what is kept as sent."""
    return [(letter.subject, letter.sent) for letter in Maildir(folder).letters("sent")]


async def test_a_letter_goes_out(tmp_path: Path) -> None:
    """To each of the addresses once, as it was written; a copy is kept, and it is said that it was
    sent.
    """
    with post_office() as office:
        failed, text, data = await send(office, tmp_path)
    assert not failed
    assert text.startswith(
        "Sent by SMTP through 127.0.0.1: “Später” to team@work.com, bob@example.com, "
        "eve@example.com"
    )
    assert (data["how"], data["refused"]) == ("smtp", {})
    (handed,) = office.letters
    assert (handed.sender, handed.recipients) == (
        "ann@example.com",
        ["team@work.com", "bob@example.com", "eve@example.com"],
    )
    assert handed.data.isascii()
    letter = BytesParser(policy=policy.default).parsebytes(handed.data)
    assert (str(letter["Subject"]), letter.get_content().replace("\r\n", "\n")) == (
        "Später",
        LETTER["body"],
    )
    assert "X-Interlock-Sent" not in letter
    assert office.commands[-1] == "QUIT"
    assert kept(tmp_path) == [("Später", "smtp")]


@pytest.mark.parametrize("tls", ["starttls", "tls"])
async def test_over_a_safe_connection(tmp_path: Path, pem: Path, tls: str) -> None:
    """User and password go over TLS only, by STARTTLS or from the first byte."""
    more = {
        "INTERLOCK_SMTP_TLS": tls,
        "INTERLOCK_SMTP_USER": USER,
        "INTERLOCK_SMTP_PASSWORD": PASSWORD,
    }
    with post_office(pem, safe=tls == "tls") as office:
        failed, text, _ = await send(office, tmp_path, **more)
    assert not failed, text
    (handed,) = office.letters
    assert (handed.safe, handed.user) == (True, USER)
    commands = office.commands
    assert "STARTTLS" not in commands or commands.index("STARTTLS") < commands.index("AUTH")


async def test_a_draft_goes_out_as_it_was_written(tmp_path: Path) -> None:
    """What is sent of a draft is in seven bits too, and the draft is gone."""
    with post_office() as office:
        async with Client(
            mail_server(tmp_path, SmtpSender.from_environment(environment(office)))
        ) as client:
            draft = (await client.call_tool("create_draft", LETTER)).structured_content
            assert office.letters == []
            result = await client.call_tool("send_draft", {"draft": draft["id"]})
        assert result.text.startswith("Sent by SMTP")
    (handed,) = office.letters
    assert handed.data.isascii()
    assert (
        BytesParser(policy=policy.default)
        .parsebytes(handed.data)
        .get_content()
        .replace("\r\n", "\n")
        == LETTER["body"]
    )
    assert Maildir(tmp_path).ids("drafts") == []


async def test_some_are_refused(tmp_path: Path) -> None:
    """The others get it, and it is said who does not, and why."""
    with post_office(refused={"bob@example.com": "no such box"}) as office:
        failed, text, data = await send(office, tmp_path)
    assert not failed
    assert office.letters[0].recipients == ["team@work.com", "eve@example.com"]
    assert data["refused"] == {"bob@example.com": "no such box"}
    assert "Not to bob@example.com, whom the server refused (no such box)" in text


async def test_all_are_refused(tmp_path: Path) -> None:
    """Nothing was sent, nothing is kept as sent, and a draft stays one."""
    refused = dict.fromkeys(["team@work.com", "bob@example.com", "eve@example.com"], "no relaying")
    with post_office(refused=refused) as office:
        failed, text, _ = await send(office, tmp_path)
        assert failed
        assert "refused all addresses, and nothing was sent: team@work.com (no relaying)" in text
        async with Client(
            mail_server(tmp_path, SmtpSender.from_environment(environment(office)))
        ) as client:
            draft = (await client.call_tool("create_draft", LETTER)).structured_content
            assert (await client.call_tool("send_draft", {"draft": draft["id"]})).is_error
    assert (office.letters, kept(tmp_path), Maildir(tmp_path).ids("drafts")) == (
        [],
        [],
        [draft["id"]],
    )


TROUBLE = [
    ("connect", "leave", "closed the connection, and nothing was sent"),
    ("connect", "554 go away", "refused the message: 554 go away"),
    ("EHLO", "leave", "closed the connection, and nothing was sent"),
    ("MAIL", "552 too large", "refused the message: 552 too large"),
    ("MAIL", "leave", "closed the connection, and nothing was sent"),
    ("RCPT", "leave", "closed the connection, and nothing was sent"),
    ("DATA", "554 not today", "refused the message: 554 not today"),
    ("end", "554 it looks like\tspam\x07", "refused the message: 554 it looks like spam"),
    (
        "end",
        "leave",
        "closed the connection after it received the message, so it is unknown whether "
        "the message was sent",
    ),
]


@pytest.mark.parametrize("at, then, words", TROUBLE)
async def test_a_server_in_trouble(tmp_path: Path, at: str, then: str, words: str) -> None:
    """In one line of words: what it said, and whether the letter may have gone out.

    Nothing is kept as sent.
    """
    with post_office(at=at, then=then) as office:
        failed, text, _ = await send(office, tmp_path)
    assert failed
    assert f"The mail server at 127.0.0.1:{office.port}" in text
    assert words in text
    assert "\n" not in text
    assert kept(tmp_path) == []


@pytest.mark.parametrize(
    "at, words",
    [
        ("connect", "and nothing was sent"),
        ("RCPT", "and nothing was sent"),
        ("end", "it is unknown whether"),
    ],
)
async def test_a_server_that_hangs(tmp_path: Path, at: str, words: str) -> None:
    """After the time allowed the call ends, and says whether the letter may have gone out."""
    with post_office(at=at, then="hang") as office:
        failed, text, _ = await send(office, tmp_path, INTERLOCK_SMTP_SECONDS="0.2")
    assert failed
    assert "did not answer within 0.2 seconds" in text
    assert words in text


@pytest.mark.parametrize("then", ["leave", "hang", "500 what?"])
async def test_a_server_that_is_rude_at_the_end(tmp_path: Path, then: str) -> None:
    """A letter that was taken is sent, whatever comes of saying goodbye."""
    with post_office(at="QUIT", then=then) as office:
        failed, text, _ = await send(office, tmp_path, INTERLOCK_SMTP_SECONDS="0.2")
    assert not failed
    assert text.startswith("Sent by SMTP")
    assert kept(tmp_path) == [("Später", "smtp")]


async def test_no_safe_connection_no_letter(
    tmp_path: Path, pem: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without STARTTLS, and one whose certificate nobody trusts, get neither letter nor
    password.
    """
    more = {
        "INTERLOCK_SMTP_TLS": "starttls",
        "INTERLOCK_SMTP_USER": USER,
        "INTERLOCK_SMTP_PASSWORD": PASSWORD,
    }
    with post_office(pem, starttls=False) as office:
        failed, text, _ = await send(office, tmp_path, **more)
        assert failed
        assert "STARTTLS extension not supported" in text
        assert not {"AUTH", "MAIL"} & set(office.commands)
    monkeypatch.delenv("SSL_CERT_FILE")
    for tls in ("starttls", "tls"):
        with post_office(pem, safe=tls == "tls") as office:
            failed, text, _ = await send(office, tmp_path, **{**more, "INTERLOCK_SMTP_TLS": tls})
            assert failed
            assert "There is no secure connection to the mail server" in text
            assert not {"AUTH", "MAIL"} & set(office.commands)


async def test_the_password_is_in_no_message(tmp_path: Path, pem: Path) -> None:
    """Not even where the server says it again, plainly or as it came."""
    wrong = "wr0ng-Pass=word"
    more = {
        "INTERLOCK_SMTP_TLS": "starttls",
        "INTERLOCK_SMTP_USER": USER,
        "INTERLOCK_SMTP_PASSWORD": wrong,
    }
    with post_office(pem) as office:
        failed, text, _ = await send(office, tmp_path, **more)
        post = SmtpSender.from_environment(environment(office, **more))
    assert failed
    assert "did not accept the user and password: no, *** which is *** is wrong" in text
    for secret in (
        wrong,
        base64.b64encode(wrong.encode()).decode(),
        base64.b64encode(f"\0{USER}\0{wrong}".encode()).decode(),
    ):
        assert secret not in text
        assert secret not in repr(post)
    with post_office(pem, auth=False) as office:
        failed, text, _ = await send(office, tmp_path, **more)
        assert failed
        assert wrong not in text


async def test_nobody_is_there(tmp_path: Path) -> None:
    """A port that refuses is named."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: whoever connects is refused
        port = taken.getsockname()[1]
        async with Client(
            mail_server(tmp_path, SmtpSender(host="127.0.0.1", port=port, tls="none", seconds=5.0))
        ) as client:
            letter = {**LETTER, "from": "ann@example.com"}
            text = (await client.call_tool("send_mail", letter)).text
    assert f"The mail server at 127.0.0.1:{port} cannot be reached" in text
    assert kept(tmp_path) == []


async def test_no_copy_can_be_kept(tmp_path: Path) -> None:
    """The letter is sent all the same, and both are said: nobody sends it again."""
    (tmp_path / "mail").write_text("no folder")
    with post_office() as office:
        failed, text, data = await send(office, tmp_path / "mail")
    assert not failed
    assert len(office.letters) == 1
    assert text.startswith(
        "Sent by SMTP through 127.0.0.1, but no copy could be stored: The mail folder "
        "cannot be written to"
    )
    assert (data["how"], data["uri"]) == ("smtp", "")


@pytest.mark.parametrize(
    "given, words",
    [
        (
            {"INTERLOCK_SMTP_TLS": "ssl"},
            "INTERLOCK_SMTP_TLS is 'ssl'; there are starttls, tls and none.",
        ),
        (
            {"INTERLOCK_SMTP_PORT": "smtp"},
            "INTERLOCK_SMTP_PORT is 'smtp'; it must be a number up to 65535.",
        ),
        ({"INTERLOCK_SMTP_PORT": "70000"}, "must be a number up to 65535"),
        ({"INTERLOCK_SMTP_SECONDS": "nan"}, "INTERLOCK_SMTP_SECONDS is 'nan'"),
        ({"INTERLOCK_MAIL_FROM": "ann"}, "INTERLOCK_MAIL_FROM: 'ann' is not an address"),
        (
            {"INTERLOCK_SMTP_HOST": "mail.example", "INTERLOCK_SMTP_USER": "ann"},
            "Of INTERLOCK_SMTP_USER and INTERLOCK_SMTP_PASSWORD only one",
        ),
        (
            {
                "INTERLOCK_SMTP_HOST": "mail.example",
                "INTERLOCK_SMTP_TLS": "none",
                "INTERLOCK_SMTP_USER": "a",
                "INTERLOCK_SMTP_PASSWORD": "b",
            },
            "the password would be sent unencrypted to mail.example",
        ),
    ],
)
async def test_variables_that_make_no_sense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], words: str
) -> None:
    """Are named when a letter is to be sent; the server itself starts, and lists what was sent."""
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    async with Client(mail_server(tmp_path)) as client:
        result = await client.call_tool("send_mail", LETTER)
        assert result.is_error
        assert words in result.text
        assert not (await client.call_tool("list_sent")).is_error


def test_whom_letters_come_from() -> None:
    """The address that is set, else the user's own; with a server and neither, nobody guesses."""
    post = SmtpSender.from_environment({"INTERLOCK_MAIL_FROM": "Ann <ann@example.com>"})
    assert str(post.sender(None)) == str(post.sender("ANN@example.com")) == "Ann <ann@example.com>"
    assert str(SmtpSender(host="h", user="ann@work.com").sender(None)) == "ann@work.com"
    assert str(SmtpSender().sender(None)) == "me@localhost"
    with pytest.raises(ToolError, match="Set INTERLOCK_MAIL_FROM, or give from"):
        SmtpSender(host="h", user="ann").sender(None)


@pytest.mark.parametrize("tls, port", [("starttls", 587), ("tls", 465), ("none", 25)])
def test_ports(tls: str, port: int) -> None:
    """Each way has the port that it usually has."""
    assert (
        SmtpSender.from_environment(
            {"INTERLOCK_SMTP_HOST": "127.0.0.1", "INTERLOCK_SMTP_TLS": tls}
        ).port
        == port
    )
