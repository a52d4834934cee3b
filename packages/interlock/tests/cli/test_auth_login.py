"""`interlock auth login`, `logout`, `status` and `token` against a real site with a browser, and
what the other commands make of it.
"""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import Result

from interlock import Stdio
from interlock.sync import Client
from tests.cli.conftest import Command
from tests.cli.identity import SECRETS, Identity, as_json, browser
from tests.cli.sites import Site
from tests.cli.terminal import at_terminal


@pytest.fixture
def site() -> Iterator[Identity]:
    """A guarded server and its authorization server."""
    made = Identity()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def surfing(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A browser that says yes to everything."""
    monkeypatch.setenv("BROWSER", browser(tmp_path))


def without_secrets(result: Result) -> Result:
    """The result, in which nothing secret may be."""
    assert not any(secret in result.output for secret in SECRETS), result.output
    return result


def test_log_in_use_and_log_out(interlock: Command, site: Identity, home: Path) -> None:
    """The whole way: refused, logged in by a browser, used by every command without a word, given
    back (`AUT-03`, `AUT-10`, `AUF-03`).
    """
    refused = interlock("call", site.url, "buy")
    assert refused.exit_code == 4
    assert f"Log in with `interlock auth login {site.url}`" in refused.stderr
    assert not (home / ".local").exists()

    result = without_secrets(interlock("auth", "login", site.url, "--scope", "shop:write"))
    assert result.exit_code == 0, result.output
    vault = home / ".local" / "share" / "interlock" / "vault" / "secrets"
    assert result.stdout.splitlines() == [
        f"Logged in to {site.url}",
        f"  at        {site.issuer}",
        "  client    client-1 (registered for this login)",
        "  scopes    shop:write shop:read",
        "  good for  10 minutes; renewed automatically after that",
        f"  kept in   {vault} (not encrypted, readable only by you)",
    ]
    assert stat.S_IMODE(vault.stat().st_mode) == 0o600
    assert [form["resource"] for form in site.forms("/token")] == [site.url]

    for words in (["list"], ["ping"], ["schema"]):
        assert interlock(words[0], site.url).exit_code == 0
    assert interlock("call", site.url, "buy").stdout == "bought\n"

    assert without_secrets(interlock("auth", "status")).exit_code == 0
    result = without_secrets(interlock("auth", "logout", site.url))
    assert (result.exit_code, result.stdout) == (
        0,
        f"Logged out of {site.url}; the tokens were revoked at {site.issuer}.\n",
    )
    assert [form["token_type_hint"] for form in site.forms("/revoke")] == [
        "refresh_token",
        "access_token",
    ]
    assert not site.good
    assert interlock("call", site.url, "buy").exit_code == 4
    assert interlock("auth", "logout", site.url).exit_code == 1
    assert interlock("auth", "status", site.url).exit_code == 1
    assert (
        interlock("auth", "status").stdout
        == "No logins are stored. Log in: interlock auth login URL\n"
    )


def test_a_bridge_uses_the_login(interlock: Command, site: Identity, home: Path) -> None:
    """And renews it; the host in front of the bridge sees no token (`AUT-10`)."""
    site.seconds = 1e-6
    assert interlock("auth", "login", site.url, "--scope", "shop:write").exit_code == 0
    site.seconds, before = 600, len(site.forms("/token"))
    keep = {name: os.environ[name] for name in ("HOME", "PYTHON_KEYRING_BACKEND")}
    seen: list[bytes] = []
    command = [sys.executable, "-m", "interlock", "bridge", site.url]
    with Client(Stdio(command, env=keep, tap=lambda way, frame: seen.append(frame))) as client:
        assert client.call_tool("buy").text == "bought"
    assert not any(secret.encode() in frame for secret in SECRETS for frame in seen)
    assert [form["grant_type"] for form in site.forms("/token")[before:]] == ["refresh_token"]


def test_status_is_a_table(interlock: Command, site: Identity) -> None:
    """Of what is kept, and never a token."""
    interlock("auth", "login", site.url)
    site.refreshes = False
    interlock("auth", "login", site.url, "--account", "work")
    result = without_secrets(interlock("auth", "status"))
    head, *rows = result.stdout.splitlines()
    assert head.split() == [
        "SERVER",
        "ACCOUNT",
        "ISSUER",
        "CLIENT",
        "SCOPES",
        "GOOD",
        "FOR",
        "THEN",
    ]
    cells = [row.split() for row in rows]
    assert cells[0] == [site.url, site.issuer, "client-1", "shop:read", "10", "minutes", "renewed"]
    assert [*cells[1][:3], *cells[1][4:]] == [
        site.url,
        "work",
        site.issuer,
        "shop:read",
        "10",
        "minutes",
        "log",
        "in",
        "again",
    ]
    for one in json.loads(without_secrets(interlock("auth", "status", site.url, "--json")).stdout):
        assert one["server"] == site.url
        assert one["refreshable"] is (one.get("account") is None)
        assert 590 <= one["seconds"] <= 600


def test_accounts_are_told_apart(interlock: Command, site: Identity) -> None:
    """By `--account`, with every command."""
    interlock("auth", "login", site.url, "--account", "work")
    assert interlock("call", site.url, "buy").exit_code == 4
    assert interlock("call", site.url, "buy", "--account", "work").stdout == "bought\n"
    other = interlock("call", site.url, "buy", "--account", "home")
    assert f"Log in: interlock auth login {site.url} --account home" in other.stderr
    assert interlock("call", "--account", "x", "--", "true").exit_code == 2


def test_a_header_goes_before_what_is_kept(interlock: Command, site: Identity) -> None:
    """Whoever gives a token means it."""
    interlock("auth", "login", site.url)
    assert (
        interlock("call", site.url, "buy", "--header", "authorization: Bearer mine").exit_code == 4
    )
    site.good.add("mine")
    assert (
        interlock("call", site.url, "buy", "--header", "authorization: Bearer mine").stdout
        == "bought\n"
    )


def test_a_stale_token_is_renewed_by_whoever_needs_it(interlock: Command, site: Identity) -> None:
    """Once, and what comes of it is kept; when it cannot be, the command says what to do
    (`AUS-13`).
    """
    site.seconds = 1e-6
    interlock("auth", "login", site.url)
    site.seconds, before = 600, len(site.forms("/token"))
    assert interlock("call", site.url, "buy").stdout == "bought\n"
    assert interlock("call", site.url, "buy").stdout == "bought\n"
    assert [form["grant_type"] for form in site.forms("/token")[before:]] == ["refresh_token"]
    site.good.clear()
    lost = interlock("call", site.url, "buy")
    assert lost.exit_code == 4
    assert f"Log in again: interlock auth login {site.url}" in lost.stderr
    assert len(site.forms("/register")) == 1


def test_a_missing_scope_names_the_command(interlock: Command, site: Identity) -> None:
    """No browser opens by itself (`AUS-04`)."""
    interlock("auth", "login", site.url)
    site.needs = "shop:write"
    result = without_secrets(interlock("call", site.url, "buy"))
    assert result.exit_code == 4
    assert f"`interlock auth login {site.url} --scope shop:write`" in result.stderr


def test_tokens_for_scripts(interlock: Command, site: Identity) -> None:
    """The one command that shows a secret; renewed when told, or when stale."""
    assert interlock("auth", "token", site.url).exit_code == 1
    interlock("auth", "login", site.url)
    first = interlock("auth", "token", site.url)
    assert first.stdout.strip() in site.good
    assert (first.exit_code, first.stderr) == (0, "")
    assert (
        interlock("auth", "token", site.url, "--header").stdout
        == f"Authorization: Bearer {first.stdout}"
    )
    second = interlock("auth", "token", site.url, "--refresh")
    assert second.stdout != first.stdout
    assert second.stdout.strip() in site.good
    site.good.clear()
    assert interlock("auth", "token", site.url, "--refresh").exit_code == 4
    site.refreshes = False
    site.seconds = 1e-6
    interlock("auth", "login", site.url)
    ended = without_secrets(interlock("auth", "token", site.url))
    assert ended.exit_code == 1
    assert "has ended and cannot be renewed" in ended.stderr


def test_a_token_on_a_terminal_comes_with_a_warning(interlock: Command, site: Identity) -> None:
    """For somebody may be looking."""
    interlock("auth", "login", site.url)
    shown, code = at_terminal(["auth", "token", site.url], [])
    assert code == 0
    assert "This is a secret" in shown
    assert "access-" in shown


def test_a_registered_client_stays_itself(
    interlock: Command, site: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id and secret are kept, so that renewing and logging in again are by the same client
    (`AUR-11`, `AUR-12`).
    """
    assert site.authority is not None
    del site.authority["registration_endpoint"]
    nobody = without_secrets(interlock("auth", "login", site.url))
    assert nobody.exit_code == 4
    assert f"interlock auth explain {site.url}" in nobody.stderr
    monkeypatch.setenv("SHOP_SECRET", "secret-of-shop")
    way = ["--client-id", "by-hand", "--client-secret-env", "SHOP_SECRET"]
    result = without_secrets(interlock("auth", "login", site.url, *way))
    assert "  client    by-hand (registered before)" in result.stdout
    monkeypatch.delenv("SHOP_SECRET")
    assert interlock("auth", "token", site.url, "--refresh").exit_code == 0
    assert interlock("auth", "login", site.url).exit_code == 0
    shown = f"Basic {base64.b64encode(b'by-hand:secret-of-shop').decode()}"
    assert [head["authorization"] for _, path, head, _ in site.asked if path == "/token"] == [
        shown
    ] * 3
    without_secrets(interlock("auth", "status", "--json"))
    assert interlock("auth", "logout", "--all").exit_code == 0
    assert interlock("auth", "login", site.url).exit_code == 4


def test_a_secret_from_a_file(interlock: Command, site: Identity, tmp_path: Path) -> None:
    """Or from stdin; never from the line, where everybody could see it."""
    secret = tmp_path / "secret"
    secret.write_text("secret-of-shop\n")
    for source, stdin in ((secret, ""), ("-", "secret-of-shop")):
        result = interlock(
            "auth",
            "login",
            site.url,
            "--client-id",
            "x",
            "--client-secret-file",
            source,
            stdin=stdin,
        )
        assert without_secrets(result).exit_code == 0
    assert {head["authorization"] for _, path, head, _ in site.asked if path == "/token"} == {
        f"Basic {base64.b64encode(b'x:secret-of-shop').decode()}"
    }


def test_another_vault(
    interlock: Command, site: Identity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `--vault`, or for all commands by INTERLOCK_VAULT."""
    place = f"file://{tmp_path}/vault/mine"
    assert interlock("auth", "login", site.url, "--vault", place).exit_code == 0
    assert interlock("auth", "status", site.url).exit_code == 1
    assert interlock("auth", "status", site.url, "--vault", place).exit_code == 0
    monkeypatch.setenv("INTERLOCK_VAULT", place)
    assert interlock("call", site.url, "buy").stdout == "bought\n"
    monkeypatch.setenv("INTERLOCK_VAULT", "gopher:")
    broken = interlock("call", site.url, "buy")
    assert (broken.exit_code, broken.stderr.count("\n")) == (4, 1)
    assert interlock("auth", "status", "--vault", "gopher:").exit_code == 2


def test_an_open_server_needs_no_log_in(interlock: Command, home: Path) -> None:
    """It says so, and keeps nothing."""
    open_one = Site()
    try:
        result = interlock("auth", "login", open_one.url)
        data = json.loads(interlock("auth", "login", open_one.url, "--json").stdout)
        assert interlock("call", open_one.url, "hello").stdout == "hello\n"
    finally:
        open_one.close()
    assert (result.exit_code, result.stdout) == (
        0,
        f"{open_one.url} does not require a login.\n",
    )
    assert data == {"server": open_one.url, "authorization": False}


def test_a_token_that_the_server_does_not_take(interlock: Command, site: Identity) -> None:
    """Is found out at once, and not by the next command; with the server's own words for it."""
    said = f'{site.challenge}, error="invalid_token", error_description="it is for another server"'
    site.answers["/mcp"] = (401, {"WWW-Authenticate": said}, b"")
    result = without_secrets(interlock("auth", "login", site.url))
    assert result.exit_code == 4
    assert "refuses a token that was just issued (it is for another server)" in result.stderr


def test_what_cannot_be_withdrawn_is_forgotten_all_the_same(
    interlock: Command, site: Identity
) -> None:
    """With words, and the code for it; where there is no place for it, with other words."""
    interlock("auth", "login", site.url)
    site.answers["/revoke"] = as_json({"error": "temporarily_unavailable"}, 503)
    result = without_secrets(interlock("auth", "logout", site.url))
    assert result.exit_code == 4
    assert f"Deleted here, but not revoked at {site.issuer}" in result.stderr
    assert interlock("auth", "status", site.url).exit_code == 1
    assert site.authority is not None
    del site.authority["revocation_endpoint"]
    interlock("auth", "login", site.url)
    assert "does not revoke tokens" in interlock("auth", "logout", site.url, "--client").stdout
    interlock("auth", "login", site.url)
    assert len(site.forms("/register")) == 2


@pytest.mark.parametrize(
    "status, location, words",
    [
        (403, "", "answers 403 to requests without a token"),
        (404, "", "answers with status 404"),
        (307, "/other", "redirects to /other; use that"),
    ],
)
def test_what_is_no_refusal_is_no_log_in(
    interlock: Command, site: Identity, status: int, location: str, words: str
) -> None:
    """One line that says what came."""
    site.answers["/mcp"] = (status, {"Location": location} if location else {}, b"")
    result = interlock("auth", "login", site.url)
    assert result.exit_code == 4
    assert words in result.stderr


def test_a_refusal_by_the_person(interlock: Command, site: Identity) -> None:
    """Code 3: the answer was no."""
    site.answers["/token"] = as_json({"error": "access_denied"}, 400)
    result = interlock("auth", "login", site.url)
    assert (result.exit_code, result.stdout) == (3, "")
    failed = interlock("auth", "login", site.url, "--json")
    assert json.loads(failed.stdout)["error"]["kind"] == "denied"


@pytest.mark.parametrize(
    "words, expected",
    [
        (["login"], "Missing argument"),
        (["login", "shop"], "is not the address of a server"),
        (["login", "https://x.example", "--device", "--paste"], "exclude each other"),
        (
            ["login", "https://x.example", "--issuer", "https://y.example"],
            "give its --client-id too",
        ),
        (
            ["login", "https://x.example", "--client-id", "a", "--client-secret-env", "NOT_SET"],
            "secret is missing from the variable NOT_SET",
        ),
        (["login", "https://x.example", "--document", "http://y.example/c"], "--document"),
        (["login", "https://x.example", "--redirect-uri", "http://y.example/c"], "--redirect-uri"),
        (["logout"], "or --all"),
        (["logout", "https://x.example", "--all"], "or --all"),
        (["lgin"], "Did you mean 'login'?"),
    ],
)
def test_wrong_usage(interlock: Command, words: list[str], expected: str) -> None:
    """Code 2, before anything is sent."""
    result = interlock("auth", *words)
    assert result.exit_code == 2, result.output
    assert expected in result.stderr


def test_every_command_explains_itself(interlock: Command) -> None:
    """With an example."""
    page = interlock("auth", "--help").stdout
    for name in ("login", "logout", "status", "token", "explain"):
        assert f"  {name} " in page
        assert f"interlock auth {name}" in interlock("auth", name, "--help").stdout


def test_paste_at_a_terminal(interlock: Command, site: Identity) -> None:
    """No browser here: the address is shown, and what the browser ended at is pasted (`AUT-13`,
    `AUF-08`).
    """
    del interlock
    site.answers["/authorize"] = as_json({})
    shown, code = at_terminal(
        ["auth", "login", site.url, "--paste"],
        [("press Enter:", "http://127.0.0.1:1/callback?error=x\r"), ("another", "\x03")],
    )
    assert code == 130, shown
    assert "That is the answer to another log-in." in shown


@pytest.mark.slow
def test_a_code_for_another_device(interlock: Command, site: Identity) -> None:
    """Shown, and waited for (RFC 8628)."""
    result = interlock("auth", "login", site.url, "--device")
    assert result.exit_code == 0, result.output
    assert "ABCD-EFGH" in result.stderr
    assert site.forms("/device")[0]["resource"] == site.url
