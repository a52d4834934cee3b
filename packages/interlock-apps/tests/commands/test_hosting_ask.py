"""`interlock ask`: programs that answer one question, against real servers and a provider on
loopback.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from interlock.models.scripted import Scripted
from interlock_apps.fleet.events import (
    CallDecided,
    CallEnded,
    ModelSays,
    Notice,
    ServerState,
    TurnEnded,
)
from interlock_apps.fleet.log import read_export
from interlock_apps.fleet.pins import Pins
from interlock_apps.fleet.questions import Decision
from interlock_apps.host.app import Host
from tests.cli.conftest import Command
from tests.commands.hosting import (
    CURIOUS,
    KEYS,
    PATIENCE,
    environment,
    ran,
    ran_here,
    started,
    written,
)
from tests.models.providers import Act, Answer, Site

SUM = Answer((("everyday__add", {"a": 1, "b": 2}),))
ALLOW = '[[rules]]\ndecision = "allow"\nserver = "*"\n'
TOKEN = "tok-3141592653589793"


@pytest.fixture
def servers(home: Path, everyday_address: str) -> Path:
    """A configuration of one server, which runs already: most tests are not about starting it."""
    entries = {"everyday": {"url": everyday_address}}
    (home / "servers.json").write_text(json.dumps({"mcpServers": entries}), encoding="utf-8")
    return home / "servers.json"


@pytest.fixture
def programs(home: Path, everyday: Path) -> Path:
    """A configuration of one server, which the command starts as a program."""
    return written(home / "servers.json", {"everyday": everyday})


@pytest.fixture
def policy(home: Path) -> Path:
    """Rules that allow everything."""
    (home / "policy.toml").write_text(ALLOW, encoding="utf-8")
    return home / "policy.toml"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """A provider that calls a tool once, and then says what it is."""
    async with Site(SUM, "It is 3.") as site:
        yield site


def said(site: Site, at: int = -1) -> str:
    """What the model was asked in a request."""
    return json.dumps(site.asked[at].body["messages"], ensure_ascii=False)


# -- answers ---------------------------------------------------------------------------------------


async def test_an_answer(programs: Path, policy: Path, site: Site) -> None:
    """The answer alone on stdout, what was called on stderr; the model has got the result
    (`HST-01`).
    """
    ended = await ran(
        "ask",
        "What is",
        "1 + 2?",
        "-c",
        programs,
        "-m",
        f"openai:m@{site.openai}",
        "--policy",
        policy,
    )
    assert (ended.code, ended.out) == (0, "It is 3.\n")
    assert "called: add of everyday" in ended.err
    assert "What is 1 + 2?" in said(site, 0)
    assert '"role": "tool"' in said(site)
    assert (programs.parent / "interlock.lock").is_file()
    assert (programs.parent / ".local/share/interlock/host/log.db").is_file()


async def test_nothing_is_called_that_no_rule_allows(servers: Path, site: Site) -> None:
    """Nobody is there to be asked: the call is refused, which the model and the person hear
    (`TOL-20`).
    """
    ended = await ran_here("ask", "1 + 2?", "-c", servers, "-m", f"openai:m@{site.openai}")
    assert (ended.code, ended.out) == (0, "It is 3.\n")
    assert (
        'not called: add of everyday {"a":1,"b":2}. This call was not allowed: This '
        "command cannot ask a user. Allow it by a rule of --policy." in ended.err
    )
    assert "cannot ask a user" in said(site)


async def test_json(servers: Path, policy: Path, site: Site) -> None:
    """One object of the shape that the guide has."""
    ended = await ran_here(
        "ask",
        "1 + 2?",
        "-c",
        servers,
        "-m",
        f"openai:m@{site.openai}",
        "--policy",
        policy,
        "--json",
    )
    answer = json.loads(ended.out)
    (call,) = answer.pop("calls")
    assert (call.pop("seconds") >= 0, answer.pop("session") != "", ended.code) == (True, True, 0)
    assert (
        call.items()
        >= {
            "server": "everyday",
            "tool": "add",
            "arguments": {"a": 1, "b": 2},
            "allowed": True,
            "by": "rule",
        }.items()
    )
    assert (
        call["error"],
        call.keys() - {"server", "tool", "arguments", "allowed", "by", "why", "error", "warnings"},
    ) == ("", set())
    assert answer == {
        "answer": "It is 3.",
        "reason": "done",
        "words": "",
        "model": "m",
        "usage": {"input": 14, "output": 10},
        "notices": [],
    }


async def test_events(servers: Path, policy: Path, site: Site) -> None:
    """Each line is an entry as a log has it; nothing else is on stdout."""
    ended = await ran_here(
        "ask",
        "1 + 2?",
        "-c",
        servers,
        "-m",
        f"openai:m@{site.openai}",
        "--policy",
        policy,
        "--events",
    )
    notes = list(read_export(ended.out.splitlines()))
    assert len(notes) == len(ended.out.splitlines())
    events = [note.event for note in notes]
    (decided,) = (event for event in events if isinstance(event, CallDecided))
    (done,) = (event for event in events if isinstance(event, CallEnded))
    (last,) = (event for event in events if isinstance(event, TurnEnded))
    assert (
        decided.allow,
        decided.by,
        done.result is not None and done.result.text,
        last.reason,
    ) == (True, "rule", "3", "done")


async def test_events_hide_nothing(servers: Path, policy: Path, site: Site) -> None:
    """What cannot be seen stands there in escapes, and is read again as it was."""
    site.acts = [Act(Answer(("a\u200bb\u202ec",)))]
    model = f"openai:m@{site.openai}"
    words = ["ask", "x", "-c", servers, "-m", model, "--policy", policy, "--events"]
    ended = await ran_here(*words)
    assert "\u200b" not in ended.out
    assert "\u202e" not in ended.out
    events = [note.event for note in read_export(ended.out.splitlines())]
    said = "".join(event.text for event in events if isinstance(event, ModelSays))
    assert said == "a\u200bb\u202ec"


async def test_the_question_on_stdin(servers: Path, site: Site) -> None:
    """`-` reads it there; nothing is no question."""
    site.acts = [Act(Answer(("Yes.",)))]
    ended = await ran_here(
        "ask", "-", "-c", servers, "-m", f"openai:m@{site.openai}", stdin="Is it\nso?"
    )
    assert (ended.code, ended.out) == (0, "Yes.\n")
    assert "Is it\\nso?" in said(site)
    empty = await ran_here("ask", "-", "-c", servers, "-m", f"openai:m@{site.openai}", stdin=" \n")
    assert (empty.code, "The question is empty." in empty.err) == (2, True)


# -- prompts, resources, questions -----------------------------------------------------------------


async def test_a_prompt(servers: Path, site: Site) -> None:
    """A server's prompt with its arguments, and a resource beside it (`PRM-03`, `RES-13`)."""
    site.acts = [Act(Answer(("Hello!",)))]
    words = ["-c", servers, "-m", f"openai:m@{site.openai}", "--prompt", "everyday/greet"]
    ended = await ran_here(
        "ask", "name=Ada", "style=pirate", *words, "--attach", "everyday=note://tea"
    )
    assert (ended.code, ended.out) == (0, "Hello!\n")
    assert "Greet Ada in a pirate way." in said(site)
    assert "a note on tea" in said(site)


@pytest.mark.parametrize(
    "words, code, says",
    [
        (["-", "--prompt", "everyday/greet"], 3, "name"),
        (["-", "--prompt", "everyday/nothing"], 3, "nothing"),
        (
            ["-", "--prompt", "nobody/greet"],
            4,
            "There is no server nobody. Configured servers: everyday.",
        ),
        (["hello", "--attach", "nobody=note://tea"], 4, "There is no server nobody"),
        (["hello", "--attach", "everyday=strange://tea"], 3, "strange://tea"),
    ],
)
async def test_what_cannot_be_said(
    servers: Path, site: Site, words: list[str], code: int, says: str
) -> None:
    """Words and an exit code; the model is not asked."""
    ended = await ran_here("ask", *words, "-c", servers, "-m", f"openai:m@{site.openai}")
    assert (ended.code, ended.out, says in ended.err) == (code, "", True), ended.err
    assert site.asked == []


async def test_errors_for_programs(servers: Path, site: Site) -> None:
    """With --json they are JSON on stdout."""
    ended = await ran_here(
        "ask",
        "hello",
        "-c",
        servers,
        "-m",
        f"openai:m@{site.openai}",
        "--attach",
        "nobody=note://tea",
        "--json",
    )
    assert (ended.code, json.loads(ended.out)) == (
        4,
        {"error": {"message": "There is no server nobody. Configured servers: everyday."}},
    )


@pytest.mark.parametrize(
    "answers, text",
    [
        ('{"row": 3, "side": "aisle", "confirm": true}', "3 aisle none False"),
        ('{"side": "aisle"}', None),
        (None, None),
    ],
)
async def test_forms(
    home: Path, questions: Path, policy: Path, site: Site, answers: str | None, text: str | None
) -> None:
    """Answered by --answers where it fits the form, and dismissed where it does not (`ELI-06`,
    `ELI-12`).
    """
    site.acts = [Act(Answer((("q__book", {}),))), Act(Answer(("Done.",)))]
    given = [] if answers is None else ["--answers", answers]
    servers = written(home / "servers.json", {"q": questions})
    ended = await ran_here(
        "ask", "Book.", "-c", servers, "-m", f"openai:m@{site.openai}", "--policy", policy, *given
    )
    assert (ended.code, ended.out) == (0, "Done.\n")
    assert ("3 aisle none False" in said(site)) == (text is not None)


@pytest.mark.parametrize("allowed", [True, False])
async def test_sampling(home: Path, policy: Path, site: Site, allowed: bool) -> None:
    """A server may ask the model where --sampling says so, and not otherwise (`SAM-05`,
    `SAM-07`).
    """
    site.acts = [
        Act(Answer((("curious__wonder", {}),))),
        *([Act(Answer(("A cat",)))] if allowed else []),
        Act(Answer(("Done.",))),
    ]
    (home / "curious.py").write_text(CURIOUS, encoding="utf-8")
    servers = written(home / "servers.json", {"curious": home / "curious.py"})
    more = ["--sampling"] if allowed else []
    ended = await ran_here(
        "ask", "Wonder.", "-c", servers, "-m", f"openai:m@{site.openai}", "--policy", policy, *more
    )
    assert (ended.code, ended.out) == (0, "Done.\n")
    assert ("The model said: A cat" in said(site)) == allowed
    assert ("--sampling lets servers ask the model" in said(site)) != allowed


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
async def test_models_by_what_is_typed(
    servers: Path, policy: Path, site: Site, provider: str
) -> None:
    """PROVIDER:MODEL@URL, with the key of the provider's usual variable."""
    url = {"openai": site.openai, "anthropic": site.anthropic, "gemini": site.gemini}[provider]
    key = {f"{provider.upper()}_API_KEY": "key-of-the-test"}
    ended = await ran_here(
        "ask",
        "1 + 2?",
        "-c",
        servers,
        "-m",
        f"{provider}:some/model@{url}",
        "--policy",
        policy,
        "--json",
        **key,
    )
    answer = json.loads(ended.out)
    assert (ended.code, answer["answer"], answer["model"], len(answer["calls"])) == (
        0,
        "It is 3.",
        "some-model",
        1,
    )
    assert "key-of-the-test" in json.dumps(site.asked[0].headers)
    assert "key-of-the-test" not in ended.out + ended.err


async def test_models_of_a_file(home: Path, servers: Path, site: Site) -> None:
    """Those of models.json, or of another file; the first is used unless one is named; one without
    its key is left out, with words.
    """
    site.acts = [Act(Answer(("Yes.",)))]
    entry = {"provider": "openai", "model": "m", "url": site.openai}
    models = {
        "keyless": {**entry, "key": "${NO_SUCH_KEY}"},
        "one": entry,
        "two": {**entry, "model": "n"},
    }
    other = home / "other.json"
    other.write_text(json.dumps({"models": models}), encoding="utf-8")
    settings = home / ".config/interlock/models.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(other.read_text(encoding="utf-8"), encoding="utf-8")
    for words, used in (
        ([], "one"),
        (["-m", "two"], "two"),
        (["--models", other, "-m", "two", "-m", "one"], "two"),
    ):
        ended = await ran_here("ask", "Hm?", "-c", servers, *words, "--json")
        assert (ended.code, json.loads(ended.out)["model"]) == (0, used)
        assert "NO_SUCH_KEY" in ended.err
    named = await ran_here("ask", "Hm?", "-c", servers, "-m", f"openai:two@{site.openai}", "--json")
    assert (named.code, site.asked[-1].body["model"]) == (
        0,
        "two",
    )  # what was typed, not what is called so in the file


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "No model is configured. Name one with --model"),
        (["-m", "openai:m"], "OPENAI_API_KEY"),
        (
            ["-m", "nobody:m"],
            "There is no model nobody:m. A model is PROVIDER:MODEL[@URL]; the providers "
            "are openai, anthropic, gemini",
        ),
        (["-m", "m"], "There is no model m."),
        (["-m", "ollama:m", "-m", "vllm:m"], "two have the name m"),
        (["--models", "half.json"], "half.json cannot be read"),
        (["--models", "list.json"], 'must be an object with "models"'),
        (["--models", "wrong.json"], "models.one"),
        (["--policy", "policy.toml"], "policy.toml:4"),
        (["--policy", "half.toml"], "half.toml:1: this is not TOML"),
        (["-m", "planner", "--prompt", "everyday"], "write SERVER/NAME"),
        (["-m", "planner", "--prompt", "everyday/greet"], "hello"),
        (["-m", "planner", "--attach", "everyday"], "write SERVER=URI"),
        (["-m", "planner", "--json", "--events"], "--json or --events, not both"),
        (["-m", "planner", "--answers", "[true]"], "an object {field: value}"),
        (["-m", "planner", "--answers", "{"], "--answers cannot be read"),
        (
            ["-m", "planner", "--trust", "everybody"],
            "--trust everybody: there is no such server; there are everyday.",
        ),
    ],
)
def test_mistakes_in_what_is_given(
    home: Path,
    servers: Path,
    interlock: Command,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    says: str,
) -> None:
    """Words that say which, where and what to write instead; nothing is begun."""
    (home / "half.json").write_text('{"models": {', encoding="utf-8")
    (home / "list.json").write_text("[]", encoding="utf-8")
    (home / "wrong.json").write_text(
        '{"models": {"one": {"provider": "openai"}}}', encoding="utf-8"
    )
    (home / "policy.toml").write_text(
        'default = "ask"\n\n\n[[rules]]\ndecision = "perhaps"\n', encoding="utf-8"
    )
    (home / "half.toml").write_text("[[rules\n", encoding="utf-8")
    model = ["-m", "planner"] if "--policy" in words else []
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    ended = interlock("ask", "hello", "-c", servers, *words, *model)
    assert (ended.exit_code, ended.stdout, says in ended.stderr) == (2, "", True), ended.stderr


# -- servers ---------------------------------------------------------------------------------------


async def test_configurations_of_any_client(home: Path, everyday: Path) -> None:
    """Several files of several formats, side by side; what cannot be used is named, and the others
    go on.
    """
    args = ["-P", "-m", "interlock", "run", str(everyday)]
    entry = {"command": sys.executable, "args": args}
    texts = {
        "claude.json": json.dumps({"mcpServers": {"claude": entry, "broken": {"command": 5}}}),
        "code.json": json.dumps(
            {
                "servers": {"code": {"type": "stdio", **entry, "env": {"A": "${input:a}"}}},
                "inputs": [{"id": "a", "type": "promptString", "description": "A", "default": "b"}],
            }
        ),
        "codex.toml": (
            f"[mcp_servers.codex]\ncommand = {json.dumps(sys.executable)}\nargs = "
            f"{json.dumps(args)}\n"
        ),
        "goose.yaml": (
            "extensions:\n  goose:\n    type: stdio\n    enabled: true\n    cmd: "
            f"{sys.executable}\n    args: {json.dumps(args)}\n"
        ),
        "zed.json": json.dumps({"context_servers": {"zed": {"source": "custom", **entry}}}),
    }
    words: list[Any] = []
    for name, text in texts.items():
        (home / name).write_text(text, encoding="utf-8")
        words += ["-c", name]
    ended = await ran_here("ask", "Hm?", *words, "-m", "planner", "--events")
    events = [note.event for note in read_export(ended.out.splitlines())]
    assert {
        event.server for event in events if isinstance(event, ServerState) and event.state == "up"
    } == {
        "claude",
        "code",
        "codex",
        "goose",
        "zed",
    }
    assert any("broken" in event.words for event in events if isinstance(event, Notice))


async def test_a_near_file_starts_nothing_by_itself(home: Path, site: Site) -> None:
    """A project's own file is no permission, and no `interlock.lock` that comes with it either
    (`SEC-17`).
    """
    site.acts = [Act(Answer(("Yes.",)))]
    (home / "curious.py").write_text(CURIOUS, encoding="utf-8")
    trace = home / "trace"
    written(home / ".mcp.json", {"curious": home / "curious.py"}, TRACE=str(trace))
    words = ["ask", "Hm?", "-m", f"openai:m@{site.openai}"]
    named = await ran_here(*words, "-c", ".mcp.json")
    assert (named.code, trace.exists()) == (0, True)
    trace.unlink()
    for _ in range(2):
        ended = await ran_here(*words, "--json")
        assert (ended.code, trace.exists()) == (0, False)
        (notice,) = json.loads(ended.out)["notices"]
        assert notice.startswith("curious is not available: ")
        assert notice.endswith(
            "Allow it in `interlock host` or `interlock chat`, or pass its file with --config."
        )
        # what somebody would ship with it who wants it to be started
        async with Host(
            home / ".mcp.json",
            models=[Scripted()],
            person=Agreeable(),
            pins=Pins(home / "interlock.lock"),
        ):
            trace.unlink()
        assert (
            "command"
            in json.loads((home / "interlock.lock").read_text(encoding="utf-8"))["servers"][
                "curious"
            ]
        )


class Agreeable:
    """Allows everything."""

    async def answer(self, question: Any) -> Decision:
        """Yes."""
        return Decision(allow=True)


@pytest.mark.parametrize(
    "words, says",
    [
        (
            [],
            "Give the file with the servers by --config. The working folder has none of "
            ".mcp.json, mcp.json",
        ),
        (["-c", "missing.json"], "missing.json"),
        (["-c", "empty.json"], "There is no server in empty.json."),
        (["-c", "half.json"], "There is no server in half.json."),
        (["-c", "twice.json", "-c", "again.json"], "it is in"),
    ],
)
def test_no_servers(
    home: Path, everyday: Path, interlock: Command, words: list[str], says: str
) -> None:
    """Words that say what to do."""
    (home / "empty.json").write_text('{"mcpServers": {}}', encoding="utf-8")
    (home / "half.json").write_text('{"mcpServers": {', encoding="utf-8")
    for name in ("twice.json", "again.json"):
        written(home / name, {"everyday": everyday})
    ended = interlock("ask", "hello", *words, "-m", "planner")
    assert (ended.exit_code, ended.stdout, says in ended.stderr) == (2, "", True), ended.stderr


async def test_trust_and_roots(home: Path, everyday: Path, site: Site) -> None:
    """What a trusted server calls read-only is not asked about; all are told of the folders
    (`TOL-04`, `ROO-01`).
    """
    (home / "curious.py").write_text(CURIOUS, encoding="utf-8")
    servers = written(home / "servers.json", {"curious": home / "curious.py", "everyday": everyday})
    (home / "policy.json").write_text(
        '{"rules": [{"decision": "allow", "tool": "folders"}]}', encoding="utf-8"
    )
    looks = Answer((("curious__look", {}), ("everyday__folders", {})))
    site.acts = [Act(looks), Act(Answer(("Done.",)))]
    words = [
        "-c",
        servers,
        "-m",
        f"openai:m@{site.openai}",
        "--policy",
        "policy.json",
        "--lock",
        home / "sub/own.lock",
    ]
    ended = await ran_here("ask", "Look.", *words, "--trust", "curious", "--root", home)
    assert (ended.code, ended.out) == (0, "Done.\n")
    assert "called: look of curious" in ended.err
    assert "seen" in said(site)
    assert home.as_uri() in said(site)
    assert (home / "sub/own.lock").is_file()
    assert not (home / "interlock.lock").exists()


# -- secrets and files -----------------------------------------------------------------------------


@pytest.mark.parametrize("how", [[], ["--json"], ["--events"]])
async def test_secrets_are_not_shown(
    home: Path, everyday: Path, policy: Path, site: Site, how: list[str]
) -> None:
    """A token of the configuration is in no output and not in the log, also where a server, or the
    model, repeats it (`SEC-16`).
    """
    site.acts = [
        Act(Answer((("everyday__variable", {"name": "SECRET"}),))),
        Act(Answer((f"It is {TOKEN} indeed.",))),
    ]
    servers = written(home / "servers.json", {"everyday": everyday}, SECRET="${TOKEN}")
    words = [
        "-c",
        servers,
        "-m",
        f"openai:m@{site.openai}",
        "--policy",
        policy,
        "--log",
        home / "log.db",
        *how,
    ]
    ended = await ran("ask", "What is it?", *words, TOKEN=TOKEN)
    assert ended.code == 0
    assert TOKEN in said(site)  # the server had it
    assert TOKEN not in ended.out + ended.err
    assert "It is •••••••• indeed." in ended.out or how == ["--events"]
    assert not [path for path in home.glob("log.db*") if TOKEN.encode() in path.read_bytes()]


async def test_rules_that_were_remembered(home: Path, servers: Path, site: Site) -> None:
    """Those in the person's own folder are heeded; a file that cannot be read is said, and allows
    nothing.
    """
    saved = home / "data/interlock/host/rules.json"
    saved.parent.mkdir(parents=True)
    saved.write_text(
        '{"rules": [{"decision": "allow", "server": "everyday", "tool": "add"}]}', encoding="utf-8"
    )
    words = ["ask", "1 + 2?", "-c", servers, "-m", f"openai:m@{site.openai}"]
    ended = await ran_here(*words, XDG_DATA_HOME=str(home / "data"))
    assert 'called: add of everyday {"a":1,"b":2}\n' in ended.err
    assert "not called" not in ended.err
    saved.write_text('{"rules": [{"decision": "perhaps"}]}', encoding="utf-8")
    site.acts = [Act(SUM), Act(Answer(("It is 3.",)))]
    ended = await ran_here(*words, XDG_DATA_HOME=str(home / "data"))
    assert "Your saved decisions are not used" in ended.err
    assert "not called: add of everyday" in ended.err


async def test_files_that_cannot_be_used(home: Path, servers: Path, site: Site) -> None:
    """A log of another program or version, a broken lock, a folder that is none: words, and nothing
    is begun.
    """
    with sqlite3.connect(home / "other.db") as db:
        db.execute("CREATE TABLE things (name TEXT)")
    db.close()
    words = ["ask", "hello", "-c", servers, "-m", f"openai:m@{site.openai}"]
    first = await ran_here(*words, "--log", home / "newer.db")
    assert first.code == 0
    with sqlite3.connect(home / "newer.db") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    (home / "text.db").write_text("This is no database. " * 100, encoding="utf-8")
    asked = len(site.asked)
    for name in ("other.db", "newer.db", "text.db"):
        before = (home / name).read_bytes()
        ended = await ran_here(*words, "--log", home / name)
        assert (ended.code, ended.out, "The log cannot be written" in ended.err) == (1, "", True), (
            ended.err
        )
        assert (home / name).read_bytes() == before
    (home / "broken.lock").write_text("{", encoding="utf-8")
    ended = await ran_here(*words, "--lock", home / "broken.lock")
    assert (ended.code, "broken.lock" in ended.err, "Traceback" in ended.err) == (2, True, False)
    for more in (["--log", servers / "log.db"], ["--lock", servers / "own.lock"]):
        ended = await ran_here(*words, *more)
        assert (ended.code, "cannot be created" in ended.err, "Traceback" in ended.err) == (
            2,
            True,
            False,
        ), ended.err
    ended = await ran_here(*words, XDG_DATA_HOME=str(servers))
    assert (ended.code, "cannot be created" in ended.err) == (2, True)
    assert len(site.asked) == asked


# -- how it ends -----------------------------------------------------------------------------------


async def test_exit_codes(servers: Path, policy: Path, site: Site) -> None:
    """A model that refuses, one that cannot be had, and a turn that was cut short."""
    words = ["ask", "hello", "-c", servers, "-m", f"openai:m@{site.openai}", "--policy", policy]
    site.acts = [Act(status=401, body={"error": {"message": "no such key"}})]
    ended = await ran_here(*words)
    assert (ended.code, ended.out, "no such key" in ended.err) == (4, "", True), ended.err
    site.acts = [Act(Answer((), stop="content_filter"))]
    ended = await ran_here(*words, "--json")
    assert (ended.code, json.loads(ended.out)["reason"]) == (3, "refused")
    site.acts = [Act(SUM)]
    ended = await ran_here(*words, "--json")
    assert (ended.code, json.loads(ended.out)["reason"]) == (1, "steps")


async def test_an_interrupt(programs: Path, policy: Path, site: Site) -> None:
    """Ctrl-C ends the turn, the servers and the command, with 130."""
    site.acts = [Act(hang=True)]
    process = await started("ask", "hello", "-c", programs, "-m", f"openai:m@{site.openai}")
    async with asyncio.timeout(PATIENCE):
        await site.begun.wait()
    process.send_signal(signal.SIGINT)
    out, err = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert (process.returncode, out.strip()) == (130, b"")
    assert b"Traceback" not in err


def test_a_reader_that_leaves(programs: Path) -> None:
    """Whoever reads only the first line, as `head` does, breaks nothing and sees no traceback."""
    command = [
        sys.executable,
        "-m",
        "interlock",
        "ask",
        "hello",
        "-c",
        str(programs),
        "-m",
        "planner",
        "--events",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline())["event"]["type"] == "serverState"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
