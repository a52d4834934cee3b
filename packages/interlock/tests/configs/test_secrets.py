"""What came from a variable or from a person is never shown, logged or written; what a person
approves is shown whole.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from interlock.configs import (
    DOTS,
    Config,
    Entry,
    Input,
    TextOrigin,
    load_config,
    read_config,
    write_config,
)

SECRET = "s3cr3t-value-77"


def read(one: dict[str, Any], env: dict[str, str] | None = None, **more: Any) -> Entry:
    (entry,) = read_config(
        json.dumps({"mcpServers": {"x": one}}),
        env={"TOKEN": SECRET, "PLAIN": "plain-value", "HOME": "/h"} if env is None else env,
        **more,
    ).entries
    return entry


@pytest.mark.parametrize(
    "one, shown",
    [
        ({"command": "npx", "args": ["-y", "a b", "--key=${TOKEN}", "it's"]},
            f"npx -y 'a b' '--key={DOTS}' 'it'\"'\"'s'"),
        ({"command": "${HOME}/bin/x", "args": ["${HOME}", "${NONE:-usual}"]}, "/h/bin/x /h usual"),
        ({"command": "${PLAIN}"}, "plain-value"),
        ({"command": "run", "args": ["${PLAIN}"]}, f"run '{DOTS}'"),
        ({"command": "a\nrm -rf /", "args": ["\x1b[2K", "\u202e", "\u200b", "x\ty"]},
            "'a⟨U+000A⟩rm -rf /' '⟨U+001B⟩[2K' '⟨U+202E⟩' '⟨U+200B⟩' 'x⟨U+0009⟩y'"),
        ({"command": "x", "args": ["y" * 5000]}, "x " + "y" * 5000),
        ({"url": "https://h.example/mcp?key=${TOKEN}&a=b"},
            f"https://h.example/mcp?key={DOTS}&a=b"),
        ({"url": "https://${PLAIN}:8443/mcp"}, "https://plain-value:8443/mcp"),
        ({"url": "https://${TOKEN}.example/mcp"}, f"https://{DOTS}.example/mcp"),
        ({"url": "https://ada:lovelace@h.example/mcp"}, f"https://{DOTS}@h.example/mcp"),
        ({"url": "https://ada:${TOKEN}@h.example/mcp"}, f"https://{DOTS}@h.example/mcp"),
        ({"url": "https://h.example/${PLAIN}/x"}, f"https://h.example/{DOTS}/x"),
        ({"url": "unix:///run/${PLAIN}"}, f"unix:///run/{DOTS}"),
    ],
)  # fmt: skip
def test_shown(one: dict[str, Any], shown: str) -> None:
    """The whole command or address, quoted, with dots for secrets and escapes for what cannot be
    seen (SEC-17).
    """
    assert read(one).shown == shown


def test_a_whole_address_from_a_variable() -> None:
    """The host is seen even then, but no query and no password that came with it (SEC-17)."""
    env = {
        "BASE": f"https://h.example/mcp?key={SECRET}",
        "OPEN": "https://h.example/mcp",
        "USER_URL": f"HTTPS://ada:{SECRET}@h.example/mcp",
    }
    assert read({"url": "${BASE}"}, env).shown == f"https://h.example/{DOTS}"
    assert read({"url": "${OPEN}"}, env).shown == "https://h.example/mcp"
    assert read({"url": "${USER_URL}"}, env).shown == f"HTTPS://{DOTS}@h.example/{DOTS}"


def test_short_secrets_are_dots_in_their_own_place() -> None:
    """A secret of two signs hides no others like it, and is hidden where it stands."""
    entry = read({"command": "x", "args": ["11", "--pin=${PIN}"]}, {"PIN": "11"})
    assert entry.shown == f"x 11 '--pin={DOTS}'"
    assert entry.secrets == frozenset()


def test_what_counts_as_a_secret() -> None:
    """Values of variables and answers; what stands in the file under a name that speaks of secrets;
    no defaults, homes or levels.
    """
    env = {
        "TOKEN": SECRET,
        "LONG_NAME": "another-value",
        "LEVEL": "debug",
        "HOME": "/home/ada-lovelace",
    }
    one = {
        "command": "x",
        "args": [
            "${TOKEN}",
            "${LONG_NAME}",
            "${LEVEL}",
            "${HOME}",
            "${NONE:-default-value}",
            "${input:pin}",
        ],
        "env": {"API_KEY": "in-the-file-1", "MODE": "in-the-file-2"},
    }
    assert read(one, env, inputs={"pin": "4711"}).secrets == {
        SECRET,
        "another-value",
        "in-the-file-1",
        "4711",
    }
    remote = {
        "url": "http://h/",
        "headers": {"Authorization": "Bearer in-the-file-3", "X-Region": "in-the-file-4"},
    }
    assert read(remote).secrets == {"Bearer in-the-file-3", "in-the-file-3"}


def test_variables_that_steer_are_shown() -> None:
    """What decides which code runs is shown with its value, any other variable by its name
    (SEC-17).
    """
    entry = read(
        {
            "command": "node",
            "env": {
                "NODE_OPTIONS": "--require ./evil.js",
                "LD_PRELOAD": "x.so",
                "MODE": "fast",
                "KEY": "${TOKEN}",
            },
        }
    )
    assert entry.shown_env == (
        f"KEY={DOTS}",
        "LD_PRELOAD=x.so",
        f"MODE={DOTS}",
        "NODE_OPTIONS=--require ./evil.js",
    )


def test_digest() -> None:
    """It changes with what is run or reached and with nothing else: not with a new token, and
    nothing is learnt from it.
    """
    one = {"command": "x", "args": ["--key=${TOKEN}"], "env": {"A": "1"}, "cwd": "/srv"}
    digest = read(one).digest
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert read(one, {"TOKEN": "another-one"}).digest == digest
    assert read({**one, "env": {"A": "2"}}).digest == digest
    assert read({**one, "timeout": 5000, "disabled": True, "tools": ["a"]}).digest == digest
    others: list[dict[str, Any]] = [
        {"command": "y"},
        {"args": ["--key", "${TOKEN}"]},
        {"env": {"B": "1"}},
        {"cwd": "/"},
        {"env": {}},
        {"args": []},
    ]
    assert len({digest, *(read({**one, **other}).digest for other in others)}) == 7
    remote = [
        read({"url": "https://h/mcp"}),
        read({"url": "https://h/mcp", "headers": {"A": "b"}}),
        read({"url": "https://i/mcp"}),
    ]
    assert remote[0].digest == remote[1].digest != remote[2].digest
    env = {"TOKEN": SECRET, "OTHER": "another-value"}
    for here, there in (
        ("--key=${TOKEN}", "--key=${OTHER}"),
        ("--key=${TOKEN}", "--key=${input:t}"),
    ):
        entries = [read({**one, "args": [arg]}, env, inputs={"t": SECRET}) for arg in (here, there)]
        assert entries[0].shown == entries[1].shown
        assert (
            entries[0].digest != entries[1].digest
        )  # other things are told to it than what was approved
    headers = [
        read({"url": "https://h/", "headers": {"A": value}}, env)
        for value in ("${TOKEN}", "${OTHER}")
    ]
    assert headers[0].digest != headers[1].digest
    assert (
        read({"command": "${TOKEN}"}).digest
        != read({"command": "${TOKEN}"}, {"TOKEN": "another-program"}).digest
    )


def test_variables_that_it_is_given() -> None:
    """A person can be told by name what a server is given, from wherever it is taken."""
    one = {
        "command": "${HOME}/x",
        "args": ["${TOKEN}", "${NONE:-${", "${env:PLAIN}", "${input:pin}"],
        "env": {"A": "${TOKEN}"},
    }
    assert read(one, inputs={"pin": "4711"}).variables == ("HOME", "PLAIN", "TOKEN", "input:pin")
    assert Entry(id="x", command=("${TOKEN}",)).variables == ()


def test_entries_made_by_hand() -> None:
    """Secrets that are named are hidden wherever they stand."""
    entry = Entry(
        id="x", command=("run", f"--key={SECRET}", SECRET), secrets=frozenset({SECRET, ""})
    )
    assert entry.shown == f"run '--key={DOTS}' '{DOTS}'"
    assert SECRET not in repr(entry)
    assert SECRET not in repr(TextOrigin(SECRET, "${TOKEN}", DOTS))
    assert (
        Entry(id="x", url=f"https://{SECRET}.example/a", secrets=frozenset({SECRET})).shown
        == f"https://{DOTS}.example/a"
    )
    assert read({"url": "https://[::1]:9/mcp"}).shown == "https://[::1]:9/mcp"


def test_rich_shows_no_more() -> None:
    """Who prints an entry with rich sees what repr shows."""
    entry = read({"command": "x", "args": ["${TOKEN}"]})
    assert entry.__rich_repr__() == [("id", "x"), ("shown", f"x '{DOTS}'")]
    assert SECRET not in repr(entry.origins["command.1"].__rich_repr__())


# -- wherever a secret is put ----------------------------------------------------------------------

VALUES = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f"),
    min_size=8,
    max_size=20,
)


def told(config: Config) -> str:
    """All that may be shown of a configuration."""
    return "\n".join(
        [
            repr(config),
            *(
                f"{entry.shown} {entry.shown_env} {entry!r} {entry.digest}"
                for entry in config.entries
            ),
            *map(str, config.problems),
        ]
    )


@given(value=VALUES, data=st.data())
def test_secrets_stay_secret(value: str, data: st.DataObject) -> None:
    """Wherever in an entry a secret is used, good or bad, it is in nothing that may be shown and in
    no text that is written.
    """
    assume(value.strip())  # blanks are everywhere
    reference = data.draw(
        st.sampled_from(["${TOKEN}", "${env:TOKEN}", "a${TOKEN}b", "${input:token}", "${TOKEN:-x}"])
    )
    place = data.draw(st.sampled_from(["args", "env", "header", "url", "query"]))
    one: dict[str, Any] = {"command": "x"}
    match place:
        case "args":
            one["args"] = ["a", reference]
        case "env":
            one["env"] = {"ANY": reference}
        case "header":
            one = {"url": "http://h/", "headers": {"X": reference}}
        case "url":
            one = {"url": f"http://h/{reference}"}
        case "query":
            one = {"url": f"http://h/?q={reference}"}
    config = read_config(
        json.dumps({"mcpServers": {"x": one}}), env={"TOKEN": value}, inputs={"token": value}
    )
    # In a quoted command a quotation mark looks otherwise; in a repr a backslash does.
    for form in {value, repr(value)[1:-1], json.dumps(value)[1:-1], value.replace("'", "'\"'\"'")}:
        assert form not in told(config)
        assert form not in write_config(config.entries)


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.toml", '[mcp_servers.x]\ncommand = "x"\nenv_vars = ["TOKEN"]\n'),
        ("a.toml", '[mcp_servers.x]\nurl = "http://h/"\nbearer_token_env_var = "TOKEN"\n'),
        ("a.toml", '[mcp_servers.x]\nurl = "http://h/"\nenv_http_headers = { X = "TOKEN" }\n'),
        ("a.yaml", "extensions:\n  x: {type: stdio, cmd: x, env_keys: [TOKEN]}\n"),
        (
            "a.yaml",
            "extensions:\n  x: {type: streamable_http, uri: 'http://h/', headers: {X: Bearer "
            "$TOKEN}}\n",
        ),
        ("a.json", '{"mcpServers": {"x": {"command": "x", "args": ["$TOKEN"], "trust": true}}}'),
        ("a.json", '{"servers": {"x": {"command": "x", "args": ["${input:t}"]}}}'),
        ("a.json", '{"mcpServers": {"x": {"command": "x", "envFile": "vars"}}}'),
    ],
)
def test_secrets_of_every_format(name: str, text: str, tmp_path: Path) -> None:
    """The manner in which a product names its secrets makes no difference."""
    (tmp_path / name).write_text(text)
    (tmp_path / "vars").write_text(f"TOKEN='{SECRET}'\n")
    config = load_config(tmp_path / name, env={"TOKEN": SECRET}, ask=lambda _: SECRET)
    (entry,) = config.entries
    assert SECRET in repr(entry.target)
    assert SECRET in entry.secrets
    assert SECRET not in told(config)
    written = write_config([entry])
    assert SECRET not in written
    assert "${TOKEN}" in written or "${input:t}" in written


def test_answers_that_do_not_fit() -> None:
    """An answer that is none of the options, or that a header cannot hold, is not repeated in the
    problem.
    """
    text = (
        '{"inputs": [{"id": "r", "type": "pickString", "options": ["eu", "us"]}], "servers": {"x": '
        '{"command": "x", "args": ["${input:r}"]}}}'
    )
    (problem,) = read_config(text, env={}, inputs={"r": SECRET}).problems
    assert problem.words == "left out: the answer to 'r' must be one of eu, us"
    header = {"mcpServers": {"x": {"url": "http://h/", "headers": {"A": "${TOKEN}"}}}}
    (problem,) = read_config(json.dumps(header), env={"TOKEN": f"{SECRET}\n"}).problems
    assert problem.words == "left out: the header A holds a line break or another control character"


def test_a_secret_that_was_moved() -> None:
    """Changed entries are written with their variables as long as the values are the same, and
    refused when a secret would be told.
    """
    entry = read({"command": "x", "args": ["-k", "${TOKEN}", "end"]})
    moved = structs.replace(entry, command=("x", "${TOKEN}", "new", SECRET))
    written = json.loads(write_config([moved]))["mcpServers"]["x"]["args"]
    assert written == ["${DOLLAR:-$}{TOKEN}", "new", "${TOKEN}"]
    changed = structs.replace(entry, command=("x", f"--key={SECRET}"))
    with pytest.raises(
        ValueError, match=r"command.1 of the server x was changed and holds a secret"
    ) as refused:
        write_config([changed])
    assert SECRET not in str(refused.value)


def test_inputs_with_passwords_are_marked() -> None:
    """Whoever asks knows not to show what is typed."""
    assert Input(id="a", password=True).password
