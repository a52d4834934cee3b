"""`interlock auth serve` and `interlock auth account`: our own authorization server, a guarded
server, and a log-in between them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.cli.terminal import at_terminal

PASSWORD = "a long enough password"
GUARDED = """
import sys

from interlock import Server
from interlock.auth import Guard, Jwt

server = Server("shop", "1.0")


@server.tool(scopes=["shop:buy"])
async def buy(what: str) -> str:
    return f"bought {what}"


@server.tool
async def look() -> str:
    return "tea"


server.run("http", port=0, guard=Guard(Jwt(sys.argv[1])),
    on_ready=lambda at: print(f"at http://127.0.0.1:{at[1]}/mcp", flush=True))
"""
PERSON = f"""
import html.parser, sys, urllib.parse, urllib.request


class Forms(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.all, self.onward = [], None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        if tag == "a":
            self.onward = known["href"]
        elif tag == "form":
            self.all.append([known["action"], {{}}, False])
        elif self.all and (
            (tag == "input" and known.get("type") != "checkbox")
            or (tag == "button" and known.get("class") == "yes")
        ):
            if known.get("name"):
                self.all[-1][1][known["name"]] = known.get("value") or ""
            self.all[-1][2] = self.all[-1][2] or tag == "button"


browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
try:
    came = browser.open(sys.argv[1], timeout=20)
    for _ in range(2):
        here = came.geturl()
        action, fields, _ = next(form for form in Forms(came.read().decode()).all if form[2])
        mine = {{"name": "ada", "password": "{PASSWORD}"}}
        fields.update({{name: value for name, value in mine.items() if name in fields}})
        request = urllib.request.Request(urllib.parse.urljoin(here, action),
            urllib.parse.urlencode(fields).encode())
        request.add_header("Origin", "{{0.scheme}}://{{0.netloc}}".format(urllib.parse.urlsplit(here)))
        came = browser.open(request, timeout=20)
    browser.open(Forms(came.read().decode()).onward, timeout=20)
except Exception:  # nobody shall wait for what does not come
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(sys.argv[1]).query))
    lost = urllib.parse.urlencode({{"error": "server_error", "state": asked["state"],
        "iss": "a browser that is lost"}})
    browser.open(asked["redirect_uri"] + "?" + lost, timeout=20)
    raise
"""


@contextmanager
def running(*command: str | Path, stdin: str = "", stream: str = "stdout") -> Iterator[str]:
    """A program, and the address that is at the end of its first line.

    It ends well when it is told to.
    """
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if stream == "stdout" else None,
        stderr=subprocess.PIPE if stream == "stderr" else None,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(stdin)
    process.stdin.close()
    lines = process.stdout if stream == "stdout" else process.stderr
    assert lines is not None
    try:
        line = lines.readline()
        assert " at http://" in f" {line}", line + lines.read()
        yield line.rpartition(" at ")[2].removeprefix("at ").strip()
    finally:
        process.terminate()
        rest = lines.read()
        lines.close()
        assert process.wait(30) == 0, rest


def test_a_server_a_client_and_a_person(
    interlock: Command, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three sides are ours: explained, logged in with a browser, used within the scopes,
    renewed, given back (`AUT-16`, `AUS-04`).
    """
    (tmp_path / "shop.py").write_text(GUARDED, encoding="utf-8")
    (tmp_path / "person.py").write_text(PERSON, encoding="utf-8")
    monkeypatch.setenv("BROWSER", f"{sys.executable} -I {tmp_path / 'person.py'} %s")
    serve = [
        "-m",
        "interlock",
        "auth",
        "serve",
        "--port",
        "0",
        "--account",
        "ada",
        "--scope",
        "shop:buy=Buy things in your name",
    ]
    with (
        running(*serve, stdin=f"{PASSWORD}\n", stream="stderr") as issuer,
        running(tmp_path / "shop.py", issuer) as url,
    ):
        explained = json.loads(interlock("auth", "explain", url, "--json").stdout)
        assert {finding["level"] for finding in explained["findings"]} == {"ok", "info"}, explained
        assert interlock("call", url, "look").exit_code == 4
        result = interlock("auth", "login", url)
        assert result.exit_code == 0, result.output
        assert f"  at        {issuer}\n" in result.stdout
        assert interlock("call", url, "buy", "what=tea").stdout == "bought tea\n"
        first = interlock("auth", "token", url, "--refresh").stdout
        assert first.count(".") == 2
        assert interlock("call", url, "buy", "what=cake").stdout == "bought cake\n"
        result = interlock("auth", "logout", url)
        assert f"revoked at {issuer}" in result.stdout, result.output
        assert interlock("call", url, "look").exit_code == 4
        result = interlock("auth", "login", url, "--dpop")
        assert result.exit_code == 0, result.output
        assert "to a key of this log-in" in result.stdout
        assert interlock("call", url, "look").stdout == "tea\n"
    assert {path.name for path in (home / ".local/share/interlock/issuer").iterdir()} >= {
        "accounts.db",
        "issuer.db",
    }


def test_accounts(interlock: Command, tmp_path: Path) -> None:
    """Added with a password from stdin, listed without it, changed, removed.

    In a file of one's own or the user's.
    """
    there = ["--accounts", tmp_path / "accounts.db"]
    assert (
        interlock("auth", "account", "list", *there).output
        == "There are no accounts. Create one: interlock auth account add NAME\n"
    )
    assert (
        interlock(
            "auth", "account", "add", "ada", "--display", "Ada L.", *there, stdin=f"{PASSWORD}\n"
        ).stdout
        == "ada can log in now.\n"
    )
    again = interlock("auth", "account", "add", "Ada", *there, stdin=f"{PASSWORD}\n")
    assert (again.exit_code, again.stderr) == (1, "Error: There is already an account ada.\n")
    assert interlock("auth", "account", "list", *there).stdout == "ada  Ada L.\n"
    (listed,) = json.loads(interlock("auth", "account", "list", "--json", *there).stdout)
    assert listed.keys() == {"name", "subject", "display", "created"}
    assert (
        interlock(
            "auth", "account", "passwd", "ada", *there, stdin="another long password\n"
        ).exit_code
        == 0
    )
    assert (
        interlock(
            "auth", "account", "passwd", "bob", *there, stdin="another long password\n"
        ).exit_code
        == 1
    )
    assert interlock("auth", "account", "passwd", "ada", *there, stdin="short\n").exit_code == 1
    assert interlock("auth", "account", "passwd", "ada", *there).exit_code == 2
    assert interlock("auth", "account", "remove", "ada", *there).exit_code == 0
    assert interlock("auth", "account", "remove", "ada", *there).exit_code == 1
    assert PASSWORD.encode() not in (tmp_path / "accounts.db").read_bytes()


def test_a_file_that_holds_no_accounts_is_named(interlock: Command, tmp_path: Path) -> None:
    """An error in a sentence, no traceback; the file is not changed."""
    path = tmp_path / "text.db"
    path.write_text("no database, and long enough to be seen as such" * 10)
    before = path.read_bytes()
    failed = interlock("auth", "account", "list", "--accounts", path)
    assert failed.exit_code == 1
    assert failed.stderr.startswith(
        f"Error: The account file {path} cannot be opened: it is damaged"
    )
    assert path.read_bytes() == before


def test_a_password_at_a_terminal(home: Path, tmp_path: Path) -> None:
    """Typed twice, and never shown."""
    del home
    words = ["auth", "account", "add", "ada", "--accounts", str(tmp_path / "accounts.db")]
    shown, code = at_terminal(
        words, [("Password for ada", f"{PASSWORD}\r"), ("Repeat for confirmation", f"{PASSWORD}\r")]
    )
    assert code == 0, shown
    assert PASSWORD not in shown


@pytest.mark.parametrize(
    "words, expected",
    [
        ([], "Nobody can log in: there are no accounts"),
        (["--account", "ada"], "The password of ada is missing"),
        (["--scope", "shop:buy"], "A scope is written NAME=SENTENCE"),
        (["--url", "http://login.example"], "An issuer is https, or http on a loopback address"),
        (["--resource", "shop"], "A resource is an absolute"),
        (["--store", "gopher:"], "names no vault"),
        (["--port", "70000"], "70000"),
    ],
)
def test_wrong_usage(interlock: Command, words: list[str], expected: str) -> None:
    """Code 2, and nothing is served."""
    if words and words[0] not in ("--account",):
        interlock("auth", "account", "add", "ada", stdin=f"{PASSWORD}\n")
    result = interlock("auth", "serve", "--port", "0", *words)
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
