"""Everything that can be wrong with a configuration is told in words that say what to do, and hides
nothing that is right.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock.configs import Config, Problem, extra, read_config

GOOD = {"command": "serve"}


def entry(**keys: Any) -> str:
    """A document with a server that may be wrong, and a good one before and after it."""
    return json.dumps({"mcpServers": {"before": GOOD, "x": keys, "after": GOOD}})


def vscode(**keys: Any) -> str:
    return json.dumps({"servers": {"before": GOOD, "x": keys, "after": GOOD}})


def zed(**keys: Any) -> str:
    return json.dumps({"context_servers": {"before": GOOD, "x": keys, "after": GOOD}})


def opencode(**keys: Any) -> str:
    good = {"type": "local", "command": ["serve"]}
    return json.dumps({"mcp": {"before": good, "x": keys, "after": good}})


def codex(*lines: str) -> str:
    return "\n".join(
        [
            "[mcp_servers.before]",
            "command = 'serve'",
            "[mcp_servers.x]",
            *lines,
            "[mcp_servers.after]",
            "command = 'serve'",
        ]
    )


def goose(*lines: str) -> str:
    good = ["    type: stdio", "    cmd: serve"]
    return "\n".join(
        [
            "extensions:",
            "  before:",
            *good,
            "  x:",
            *(f"    {line}" for line in lines),
            "  after:",
            *good,
        ]
    )


# A document with one server `x` that is left out, and a part of the words that say why.
LEFT_OUT = [
    (entry(), "neither a command nor a url"),
    (entry(command="a", url="http://h/"), "both a command and a url"),
    (entry(command=["a", "b"]), "its command must be a string, and is a list"),
    (entry(command=" "), "its command is empty"),
    (
        entry(command="a", revision="2025-13-01"),
        "its revision is unknown; known are 2024-11-05, ",
    ),
    (entry(command="a", revision=20251125), "its revision must be a string"),
    (entry(command="a", args="b c"), "its args must be a list of strings"),
    (entry(command="a", args=["b", 3]), "its args must be a list of strings"),
    (entry(command="a", args=["b"] * 1001), "its args has more than 1000 items"),
    (entry(command="a", args=["a\0b"]), "a character that no text can have"),
    (entry(command="a", args=["\ud800"]), "a character that no text can have"),
    (entry(command="a", env=["K=v"]), "its env must be an object, and is a list"),
    (
        entry(command="a", env={"K": ["v"]}),
        "in its env the value of 'K' must be a string, and is a list",
    ),
    (entry(command="a", env={"K=": "v"}), "a variable with an invalid name"),
    (entry(command="a", env={"": "v"}), "a variable with an invalid name"),
    (
        entry(command="a", env={f"K{n}": "v" for n in range(1001)}),
        "its env has more than 1000 names",
    ),
    (entry(command="a", disabled="yes"), "its disabled must be true or false, and is a string"),
    (entry(command="a", timeout="long"), "its timeout must be a number, and is a string"),
    (entry(command="a", timeout=True), "its timeout must be a number, and is true or false"),
    (entry(command="a", type="http"), "its type is http, and it has no url"),
    (entry(url="http://h/", type="stdio"), "its type is stdio, and it has no command"),
    (entry(url="ws://h/", type="ws"), "known are stdio, http and sse"),
    (entry(url="ftp://h/"), "its url must be http://, https://"),
    (entry(url="http://h/a b"), "its url must be http://, https://"),
    (entry(url="http:///mcp"), "its url lacks a host"),
    (entry(url="http://h:99999/"), "an invalid host or port"),
    (entry(url="http://[::1/"), "an invalid host or port"),
    (entry(url="tcp://h"), "its url lacks a host or a port"),
    (entry(url="unix://path/socket"), "a Unix socket is unix:///path"),
    (entry(url="http://h/", headers={"A B": "c"}), "a header has an invalid name"),
    (entry(url="http://h/", headers={"A": "b\r\nC: d"}), "the header A holds a line break"),
    (entry(url="http://h/", headers={"A": "b", "a": "c"}), "a header is there twice"),
    (entry(url="http://h/", headersHelper="/bin/make-headers"), "it has headersHelper"),
    (
        entry(command="a", args=["${NOPE}"]),
        "the variable NOPE is not set; set it, or write ${NOPE:-default}",
    ),
    (entry(command="a", args=["${env:NOPE}"]), "the variable NOPE is not set"),
    (entry(command="a", args=["${A:-${B}}"]), "the default of ${A:-...} holds a variable"),
    (
        entry(command="a", args=["${not a name}"]),
        "${not a name} is not a variable that this host knows",
    ),
    (entry(command="a", args=["${workspaceFolder}"]), "no folder is open"),
    (entry(command="a", args=["${userHome}"]), "neither HOME nor USERPROFILE is set"),
    (
        entry(command="a", args=["${input:token}"]),
        "the input 'token' has no answer",
    ),
    (entry(command="a", args=["${BIG}" * 20]), "too long once its variables are filled in"),
    (
        entry(command="a", envFile=".env"),
        "which is read only if the configuration is a file",
    ),
    (entry(command="a", tools=["x"], includeTools=["x"]), "it has both tools and includeTools"),
    (entry(httpUrl="http://h/", authProviderType="google_credentials"), "it has authProviderType"),
    (entry(tcp="ws://h/", trust=True), "it has tcp"),
    (vscode(command="a", sandboxEnabled=True, sandbox=7), "its sandbox must be an object"),
    (entry(command="a", sandbox={"filesytem": {}}), "its sandbox has an unknown key"),
    (entry(command="a", sandbox={"memory": "much"}), "memory must be a size"),
    (entry(command="a", sandbox="yes"), "its sandbox must be an object"),
    (vscode(type="http", url="unix:///run/x.sock"), "HTTP over a Unix socket"),
    (vscode(type="http", url="pipe:///pipe/x"), "HTTP over a Unix socket or a named pipe"),
    (vscode(command="a", args=["${HOME}"]), "${HOME} is not a variable here; write ${env:HOME}"),
    (
        vscode(command="a", args=["${command:ask.me}"]),
        "${command:ask.me} is not a variable that this host knows",
    ),
    (
        vscode(command="a", args=["${config:x}"]),
        "${config:x} is not a variable that this host knows",
    ),
    (zed(command=5), "its command must be a string, and is a number"),
    (opencode(type="stdio"), "its type is unknown; known are local and remote"),
    (opencode(type="local"), "its type is local, and it has no command"),
    (opencode(type="remote"), "its type is remote, and it has no url"),
    (opencode(type="local", command="serve"), "its command must be a list of strings"),
    (opencode(type="local", command=["a", "{file:~/key}"]), "a value from a file"),
    (codex("command = 'a'", "env_vars = ['NOPE']"), "the variable NOPE is not set"),
    (
        codex("command = 'a'", "env_vars = [{ name = 'K', source = 'remote' }]"),
        "has another source",
    ),
    (codex("command = 'a'", "env_vars = [5]"), "its env_vars must be names of variables"),
    (codex("url = 'http://h/'", "bearer_token_env_var = 'NOPE'"), "the variable NOPE is not set"),
    (
        codex("url = 'http://h/'", "bearer_token_env_var = 'a b'"),
        "its bearer_token_env_var must be names of variables",
    ),
    (
        codex("url = 'http://h/'", "env_http_headers = { A = 'NOPE' }"),
        "the variable NOPE is not set",
    ),
    (codex("url = 'http://h/'", "bearer_token = 'abc'"), "it has bearer_token"),
    (codex("command = 'a'", "experimental_environment = 'remote'"), "it is meant to run elsewhere"),
    (goose("type: stdio"), "neither a command nor a url"),
    (goose("cmd: a"), "known are stdio, streamable_http and sse"),
    (goose("type: stdio", "cmd: a", "env_keys: [NOPE]"), "the variable NOPE is not set"),
    (
        goose("type: stdio", "cmd: a", "env_keys: ['a-b']"),
        "its env_keys must be names of variables",
    ),
    (
        goose("type: streamable_http", "uri: http://h/", "headers: {A: $NOPE}"),
        "the variable NOPE is not set",
    ),
    (goose("type: streamable_http", "uri: http://h/", "socket: /run/x"), "it has socket"),
]

# A document whose server `x` is there, or is rightly not, and a part of the note about it.
NOTED = [
    (entry(command="a", headers={"A": "b"}), True, "its headers are not used"),
    (entry(url="http://h/", args=["b"]), True, "its args is not used"),
    (entry(url="http://h/", oauth={"clientId": "x"}), True, "its oauth is not used"),
    (entry(command="a", alwaysLoad=True), True, "its alwaysLoad is not used"),
    (entry(command="a", autoApprove=["b"]), True, "its autoApprove is not used"),
    (entry(command="a", colour="blue"), True, "its colour is unknown and not used"),
    (entry(command="a", timeout=30), True,
        "its timeout is not used: it must be at least 1000 (milliseconds)"),
    (entry(command="a", timeout=10**400), True, "its timeout is not used"),
    (entry(command="a", startTimeout=-1), True, "its startTimeout is not used"),
    (zed(source="extension", settings={"key": "v"}), False, "it is an extension of Zed"),
    (zed(settings={"key": "v"}), False, "it is an extension of Zed"),
    (zed(command="a", timeout=60), True, "disagree on its unit"),
    (zed(command={"path": "a", "shape": "round"}), True, "its command.shape is unknown"),
    (codex("command = 'a'", "required = true"), True, "its required is not used"),
    (codex("command = 'a'", "tool_timeout_sec = 0.5"), True,
        "its tool_timeout_sec is not used: it must be at least 1 (second)"),
    (codex("command = 'a'", "default_tools_approval_mode = 'approve'"), True,
        "the policy of the host decides"),
    (goose("type: builtin", "name: developer"), False, "it is part of Goose (builtin)"),
    (goose("type: platform", "name: todo"), False, "it is part of Goose (platform)"),
]  # fmt: skip

ENV = {"BIG": "x" * 100_000}


def ids(config: Config) -> list[str]:
    return [one.id for one in config.entries]


@pytest.mark.parametrize("text, words", LEFT_OUT, ids=[words for _, words in LEFT_OUT])
def test_left_out(text: str, words: str) -> None:
    """A server that cannot be used is left out with the reason; those beside it are there."""
    config = read_config(text, env=ENV, source="here")
    assert ids(config) == ["before", "after"]
    (problem,) = config.problems
    assert (problem.where, problem.id, problem.level) == ("here: x", "x", "error")
    assert problem.words.startswith("left out: ")
    assert words in problem.words


@pytest.mark.parametrize("text, there, words", NOTED, ids=[words for _, _, words in NOTED])
def test_noted(text: str, there: bool, words: str) -> None:
    """What can be done without is no silent loss; what only its own product can start is no
    fault.
    """
    config = read_config(text, env=ENV)
    assert ids(config) == (["before", "x", "after"] if there else ["before", "after"])
    (problem,) = config.problems
    assert (problem.where, problem.level) == ("x", "note")
    assert words in problem.words


@pytest.mark.parametrize(
    "id, words",
    [
        ("", "a server has no name"),
        ("  ", "a server has no name"),
        ("interlock", "`interlock` is the name of the host itself"),
        ("Interlock", "`interlock` is the name of the host itself"),
        ("x" * 201, "its name has 201 characters; 200 are allowed"),
        ("a\nb", "invisible characters"),
        ("a\u202eb", "invisible characters"),
    ],
)
def test_names_that_are_refused(id: str, words: str) -> None:
    """A name must be there, be seen, and not be the host's own."""
    config = read_config(json.dumps({"mcpServers": {"before": GOOD, id: GOOD}}), env={})
    assert ids(config) == ["before"]
    (problem,) = config.problems
    assert words in problem.words
    assert problem.where.isprintable()
    assert len(problem.where) <= 200


def test_the_longest_name() -> None:
    """200 signs are allowed, of any script."""
    assert ids(read_config(json.dumps({"mcpServers": {"ü" * 200: GOOD}}), env={})) == ["ü" * 200]


# A text that cannot be read at all, and the whole of the words that say so.
UNREADABLE = [
    ("", "", "it cannot be read: it is empty"),
    (" \n\t", "", "it cannot be read: it is empty"),
    (
        '{"mcpServers": {"a": {"command": "x"}}',
        "",
        "it cannot be read: line 1, column 39: this is not JSON (a comma or } is missing)",
    ),
    (
        '{"a": 1,\n  b: 2}',
        "",
        (
            "it cannot be read: line 2, column 3: "
            "this is not JSON (a string is missing or does not end)"
        ),
    ),
    (
        '{"a": "never ends\n}',
        "",
        (
            "it cannot be read: line 1, column 7: "
            "this is not JSON (a string is missing or does not end)"
        ),
    ),
    (
        '{"a": 1} // {\n x',
        "",
        "it cannot be read: line 2, column 2: this is not JSON (text follows after the end)",
    ),
    (
        '{"a": NaN}',
        "",
        "it cannot be read: line 1, column 7: this is not JSON (a value is missing)",
    ),
    ("[1, 2]", "x.json", "it cannot be read: it must be an object or a table"),
    ('{"a": ' + "[" * 200 + "]" * 200 + "}", "", "it cannot be read: it has more than 100 levels"),
    ('{"a": ' + "[" * 100_000, "", "it cannot be read: it has more than 100 levels"),
    ("x = " + "9" * 5000, "x.toml", "it cannot be read: a number or date in it cannot be read"),
    (
        "[mcp_servers.a]\ncommand = \n",
        "",
        "it cannot be read: line 2, column 11: this is not TOML (Invalid value)",
    ),
    (
        "[mcp_servers.a]\ncommand = 'x'\ncommand = 'y'\n",
        "",
        "it cannot be read: line 3, column 14: this is not TOML (Cannot overwrite a value)",
    ),
    ("x = [", "c.toml", "it cannot be read: at the end: this is not TOML (Invalid value)"),
    ("extensions:\n  a: [1, 2\n", "", "it cannot be read: line 3, column 1: this is not YAML"),
    ("extensions:\n\ta: 1\n", "", "it cannot be read: line 2, column 1: this is not YAML"),
    (
        "extensions:\n  a: 1\n  a: 2\n",
        "",
        "it cannot be read: line 3, column 3: this key appears twice",
    ),
    (
        "a: &x [1]\nb: *x\n",
        "",
        (
            "it cannot be read: line 2, column 4: it repeats a part by an alias (*), which is not "
            "supported; write the part out"
        ),
    ),
    (
        "a: !!python/object/apply:os.system [ls]\n",
        "c.yaml",
        "it cannot be read: line 1, column 4: this is not YAML",
    ),
    (
        "a: " + "[" * 200 + "]" * 200,
        "c.yaml",
        "it cannot be read: line 1, column 103: it has more than 100 levels",
    ),
    (
        "a: 2026-13-45",
        "c.yml",
        "it cannot be read: this is not YAML, or a value in it cannot be read",
    ),
    ("# nothing\n", "c.yaml", "it cannot be read: it is empty"),
    ("just words", "c.yaml", "it cannot be read: it must be an object or a table"),
    (
        '{"a": 1}',
        "",
        (
            "it holds no servers; they belong under mcpServers, servers (VS Code), context_servers "
            "(Zed), mcp_servers (Codex, TOML) or extensions (Goose, YAML)"
        ),
    ),
    ('{"mcpServers": []}', "", "mcpServers must be an object with the servers by name"),
    (
        '{"mcpServers": {}, "mcpServers": {}}',
        "",
        "mcpServers is there more than once, and only the last was read; merge them",
    ),
    (
        " " * (1 << 20) + "{}",
        "",
        "it cannot be read: it is larger than 1 MiB, the limit for configurations",
    ),
    (
        '{"a": "' + "ü" * (1 << 19) + '"}',
        "",
        "it cannot be read: it is larger than 1 MiB, the limit for configurations",
    ),
]


@pytest.mark.parametrize("text, name, words", UNREADABLE, ids=range(len(UNREADABLE)))
def test_unreadable(text: str, name: str, words: str) -> None:
    """Broken syntax is told with its line and column; nothing raises, and no alias or depth makes a
    text grow.
    """
    config = read_config(text, env={}, source=name)
    assert config.entries == ()
    assert config.problems == (Problem(where=name, words=words),)


def test_a_number_with_too_many_digits() -> None:
    """Python refuses to read it, and so is it told."""
    config = read_config(
        '{"mcpServers": {"x": {"command": "a", "timeout": ' + "9" * 5000 + "}}}", env={}
    )
    assert [problem.words for problem in config.problems] == [
        "it cannot be read: line 1, column 50: this is not JSON (a number has too many digits)"
    ]
    huge = read_config(
        '{"mcpServers": {"x": {"command": "a", "timeout": ' + "9" * 400 + "}}}", env={}
    )
    assert [problem.level for problem in huge.problems] == ["note"]


def test_yaml_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """ruamel.yaml is optional. Without it the problem names the extra that brings it."""
    monkeypatch.setattr(extra, "find_spec", lambda module: None)
    config = read_config("extensions: {}", env={}, source="config.yaml")
    assert [problem.words for problem in config.problems] == [
        "it cannot be read: YAML needs another package: pip install 'interlock[install]'"
    ]
    assert read_config('{"mcpServers": {"x": {"command": "y"}}}', env={}).problems == ()


def test_names_that_stand_twice() -> None:
    """Which one was meant cannot be known, so neither is taken; the same holds for keys of a
    server, its variables, and two sections.
    """
    twice = read_config(
        '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "a": {"command": "y"}}}',
        env={},
    )
    assert ids(twice) == ["b"]
    assert [(problem.id, problem.words) for problem in twice.problems] == [
        ("a", "this name is there more than once, so none of them is used; keep one")
    ]
    sections = read_config(
        '{"mcpServers": {"a": {"command": "x"}}, "servers": {"a": {"command": "y"}, "b": '
        '{"command": "z"}}}',
        env={},
    )
    assert ids(sections) == ["b"]
    keys = read_config(
        '{"mcpServers": {"a": {"command": "x", "command": "y"}, "b": {"command": "x", "env": '
        '{"K": "1", "K": "2"}}}}',
        env={},
    )
    assert ids(keys) == []
    assert [problem.words for problem in keys.problems] == [
        "left out: command is in it more than once; keep one",
        "left out: its env has K more than once; keep one",
    ]


def test_too_many_servers() -> None:
    """A thousand are read, and that there are more is told once."""
    config = read_config(json.dumps({"mcpServers": {f"s{n}": GOOD for n in range(1002)}}), env={})
    assert len(config.entries) == 1000
    assert [problem.words for problem in config.problems] == [
        "it has more than 1000 servers; the others are left out"
    ]


def test_entries_of_other_kinds() -> None:
    """What is no object is told for each."""
    config = read_config(
        json.dumps({"mcpServers": {"a": "npx -y a", "b": None, "c": ["x"], "d": GOOD}}), env={}
    )
    assert ids(config) == ["d"]
    assert {problem.words for problem in config.problems} == {
        "left out: it must be an object with a command or a url"
    }


def test_values_that_are_no_texts() -> None:
    """Numbers and truth are written out as in JSON, and null leaves a variable out; what a variable
    stands for must be a text too.
    """
    (one,) = read_config(
        json.dumps(
            {
                "mcpServers": {
                    "a": {
                        "command": "x",
                        "env": {"A": True, "B": False, "C": 1.5, "D": 0, "E": None},
                    }
                }
            }
        ),
        env={},
    ).entries
    assert one.env == {"A": "true", "B": "false", "C": "1.5", "D": "0"}
    (problem,) = read_config(
        json.dumps({"mcpServers": {"a": {"command": "x", "args": ["${A}"]}}}), env={"A": "\udcff"}
    ).problems
    assert problem.words == "left out: command.1 holds a character that no text can have"


def test_nothing_is_run_by_a_shell() -> None:
    """What looks like a command of a shell is a text like any other."""
    text = json.dumps(
        {
            "mcpServers": {
                "a": {"command": "a; b", "args": ["$(id)", "`id`", "$HOME", "%PATH%", "~"]}
            }
        }
    )
    (one,) = read_config(text, env={"HOME": "/h"}).entries
    assert one.command == ("a; b", "$(id)", "`id`", "$HOME", "%PATH%", "~")


def test_words_can_be_seen() -> None:
    """No sign of a file gets into the words of a problem in a way that hides or moves others."""
    config = read_config(
        json.dumps({"mcpServers": {"a": {"command": "a", "\u202e\x1b[2J": 1}, "b\x1b[31m": GOOD}}),
        env={},
        folder=Path("/f"),
    )
    assert len(config.problems) == 2
    assert all(str(problem).isprintable() for problem in config.problems)
