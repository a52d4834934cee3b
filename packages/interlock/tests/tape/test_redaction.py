"""Redaction of recordings: a secret put anywhere never reaches the file."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.redaction import DOTS, text
from interlock.tape import Recorder, Tape, TapeFile
from interlock.tape.frame_redaction import FrameRedactor, secrets_of_process

SECRET = 'pa"ss/wörd-4711'
SHAPED = "ghp_" + "a1B2" * 9
NAMED = "hunter2hunter2"

texts = st.text(max_size=8)


def escaped(text: str) -> str:
    """The text with every character escaped, as JSON allows."""
    return "".join(
        f"\\u{unit:04x}" for sign in text for unit in memoryview(sign.encode("utf-16-le")).cast("H")
    )


places = st.sampled_from(
    [
        lambda secret, text: {text: f"{text}{secret}{text}"},
        lambda secret, text: {f"{text}{secret}": text},
        lambda secret, text: [text, [secret]],
        lambda secret, text: {"text": json.dumps({"a": secret, "b": text})},
        lambda secret, text: {"text": json.dumps({"a": json.dumps([secret])})},
        lambda secret, text: f"{text}{secret}",
        lambda secret, text: {"text": f"see https://user:{secret}@example.org"},
    ]
)
encoders = st.sampled_from(
    [
        lambda value: json.dumps(value),
        lambda value: json.dumps(value, ensure_ascii=False),
        lambda value: json.dumps(value, indent=1).replace("\n", " "),
        lambda value: json.dumps(value).replace("/", "\\/"),
    ]
)
members = st.sampled_from(["params", "result", "error", "id", "method", "x"])


def recorded(*steps: Any, **options: Any) -> str:
    """The text of a tape on which these steps were recorded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "session.tape"
        with Recorder(path, **options) as recorder:
            connection = recorder.connection()
            for step in steps:
                step(connection)
        with TapeFile(path) as tape:
            assert tape.verify() == []
        return path.read_text(encoding="utf-8", errors="replace")


def assert_gone(secret: str, text: str) -> None:
    """Neither plain nor in any escaped form: each line is decoded, and strings in it again."""
    assert secret not in text
    pending: list[Any] = [json.loads(line) for line in text.split("\n") if line]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str):
            assert secret not in value
            if value[:1] in ("{", "["):
                try:
                    pending.append(json.loads(value))
                except ValueError:
                    continue


@given(
    secret=st.sampled_from([SECRET, SHAPED]),
    place=places,
    text=texts,
    encode=encoders,
    member=members,
    sender=st.sampled_from(["client", "server"]),
)
def test_no_secret_in_a_message(
    secret: str, place: Any, text: str, encode: Any, member: str, sender: str
) -> None:
    """A known value and one with the shape of a key: in keys, values, ids, JSON within JSON, and
    escaped in any way.
    """
    frame = encode({"jsonrpc": "2.0", member: place(secret, text)}).encode("utf-8", "replace")
    assert_gone(secret, recorded(lambda to: to(sender, frame), secrets=[SECRET]))


@pytest.mark.parametrize("secret", [SECRET, SHAPED])
def test_no_secret_whose_characters_are_escaped(secret: str) -> None:
    frame = f'{{"params":{{"x":"{escaped(secret)}","{escaped(secret)}":1}}}}'.encode()
    assert_gone(secret, recorded(lambda to: to("client", frame), secrets=[SECRET]))


@pytest.mark.parametrize(
    "frame",
    [b"not json: %b", b'{"half": "%b', b"\xff\xfe %b \xff", b'[{"params":"%b"}]'],
)
def test_no_secret_in_bytes_that_are_no_message(frame: bytes) -> None:
    text = recorded(lambda to: to("server", frame % SHAPED.encode()))
    assert_gone(SHAPED, text)


def test_no_secret_that_is_a_number() -> None:
    text = recorded(lambda to: to("client", b'{"params":{"pin":48151623}}'), secrets=["48151623"])
    assert "48151623" not in text


@pytest.mark.parametrize(
    "name", ["password", "apiKey", "api_key", "accessToken", "client_secret", "Authorization"]
)
@pytest.mark.parametrize("nested", [False, True])
def test_members_with_secret_names(name: str, nested: bool) -> None:
    """The value is redacted, and from then on wherever it occurs."""
    arguments: Any = {name: NAMED, "note": f"again {NAMED}"}
    value = {"params": {"arguments": json.dumps(arguments) if nested else arguments}}
    text = recorded(
        lambda to: to("client", json.dumps(value).encode()),
        lambda to: to("server", json.dumps({"result": f"You said {NAMED}"}).encode()),
        lambda to: to.stderr(f"got {NAMED}\n"),
    )
    assert_gone(NAMED, text)
    assert DOTS in text


def test_no_secret_in_heads_stderr_or_header() -> None:
    headers = [
        ("Authorization", f"Bearer {NAMED}"),
        ("X-Api-Key", SHAPED),
        ("Cookie", "session=qwertyuiop"),
        ("Mcp-Session-Id", "0123456789abcdef"),
        ("Accept", "*/*"),
    ]
    text = recorded(
        lambda to: to.http_request(1, "POST", f"/mcp?token={NAMED}x", headers),
        lambda to: to.http_response(1, 200, [("Set-Cookie", "sid=asdfghjkl; Path=/")]),
        lambda to: to.stderr(f"Authorization: Bearer {NAMED}\nkey {SHAPED}\n"),
        about={"command": ["server", f"--api-key={SHAPED}"], "env": {"password": NAMED}},
    )
    for secret in (NAMED, SHAPED, "qwertyuiop", "0123456789abcdef", "asdfghjkl"):
        assert_gone(secret, text)
    assert '["Accept","*/*"]' in text
    assert "Bearer" in text


def test_harmless_messages_are_kept_byte_for_byte() -> None:
    redactor = FrameRedactor()
    for frame in (
        b'{"jsonrpc": "2.0" , "params":{"_meta":{"progressToken":"abc"},"key":"PROJ-1"}}',
        b'{"result":{"content":[{"type":"text","text":"line\\nline \\"quoted\\""}]}}',
        '{"result":"gr\u00fc\u00dfe \\u00e9 \\/ C:\\\\x"}'.encode(),
        b'{"inputSchema":{"properties":{"password":{"type":"string"}},"required":["password"]}}',
    ):
        assert redactor.frame(frame) is frame


def test_secrets_of_the_environment() -> None:
    """Values whose names say that they are secret, but no words that occur everywhere."""
    found = secrets_of_process(
        ["server", "--token", "0a1b2c3d4e"],
        {"API_KEY": "abcdefgh", "DISABLE_AUTH": "true", "AUTH_PORT": "8080", "HOME": "/root"},
    )
    assert found == {"0a1b2c3d4e", "abcdefgh"}


def test_a_redacted_recording_still_opens() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.tape"
        with Recorder(path, secrets=[SECRET]) as recorder:
            frame = json.dumps({"id": 1, "method": "x", "params": {"name": SECRET}}).encode()
            recorder.connection()("client", frame)
        (line,) = Tape.load(path)
        assert line.message == {"id": 1, "method": "x", "params": {"name": DOTS}}


@pytest.mark.parametrize("pattern", [text._SHAPES, text._SCHEMES, text._NAMED])
@given(data=st.data())
def test_no_pattern_matches_a_shorter_text_than_is_searched(pattern: Any, data: Any) -> None:
    """Texts with = or @ are searched however short they are."""
    found = pattern.search(data.draw(st.from_regex(pattern, fullmatch=True)))
    if found is not None:
        assert len(found[0]) >= text._SHORTEST


@pytest.mark.parametrize("short", ["DPoP abcdefg1", "?token=abc", "://a:b@c"])
def test_no_secret_in_short_texts(short: str) -> None:
    """The shortest that have the shape of one."""
    assert DOTS in text.without_keys(short)


@pytest.mark.parametrize("pattern", [text._SHAPES, text._SCHEMES, text._NAMED, text._LOGIN])
@given(data=st.data())
def test_the_prefilter_passes_whatever_a_pattern_changes(pattern: Any, data: Any) -> None:
    """Alone, and beside other text."""
    key = data.draw(st.from_regex(pattern))
    for around in (key, f"{data.draw(texts)}{key}{data.draw(texts)}"):
        assert text.without_keys(around) == text._replace_keys(around)


@given(st.from_regex(r"\A[a-z:/]{0,9}[?&][a-z._-]{0,4}(token|key|pass|sig)=[a-z&?]{1,9}\Z"))
def test_the_prefilter_passes_secrets_of_a_query(query: str) -> None:
    assert text.without_keys(query) == text._replace_keys(query)


class SlowRedactor(FrameRedactor):
    """Decodes each message, whatever is in it."""

    def _is_suspicious(self, text: str) -> bool:
        return True


member_names = st.sampled_from(
    [
        *("password", "db_pass", "apiKey", "X-API-Key", "refresh.token", "auth-sig", "secrets"),
        *("progressToken", "name", "uri", "keyboard", "sn", "dsn", "Set-Cookie", "passphrase"),
    ]
)
values = st.recursive(
    st.sampled_from([NAMED, SHAPED, SECRET, "a:b", "see ?token=abc", "\u212a", 12345678, True, ""])
    | texts,
    lambda parts: (
        st.dictionaries(member_names | texts, parts, max_size=4)
        | st.lists(parts, max_size=3)
        | st.dictionaries(member_names, parts, max_size=2).map(json.dumps)
    ),
    max_leaves=8,
)


@given(
    value=values,
    separators=st.sampled_from([(",", ":"), (", ", ": "), (",", "\n: "), (" , ", "\t:")]),
    is_ascii=st.booleans(),
    known=st.sampled_from([[], [SECRET]]),
)
def test_messages_without_secrets_are_not_decoded(
    value: Any, separators: tuple[str, str], is_ascii: bool, known: list[str]
) -> None:
    """A message that passes the prefilter is what it would be if it were decoded and searched."""
    frame = json.dumps({"result": value}, separators=separators, ensure_ascii=is_ascii)
    raw = frame.encode("utf-8", "replace")
    assert FrameRedactor(known).frame(raw) == SlowRedactor(known).frame(raw)
