"""The pure parts of the fetch server: pages of a text, headings, encodings, addresses, settings."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import ToolError, settings_of
from interlock.cursors import encode_cursor
from interlock_servers.fetch import FetchSettings, server_of
from interlock_servers.fetch.charsets import decoded
from interlock_servers.fetch.documents import leaves, type_of
from interlock_servers.fetch.fetcher import address
from interlock_servers.fetch.paging import (
    TextPlace,
    clean,
    cursor_of,
    digest_of,
    end_of,
    headings_of,
    place_of,
)
from interlock_servers.fetch.settings import PREFIX

# Pages.

TEXTS = st.text(st.sampled_from("ab \n\n.é\u0301\u200d👩🏽💻漢"), max_size=400)


@given(TEXTS, st.integers(1, 50))
def test_pages_joined_are_the_document(text: str, length: int) -> None:
    """Nothing is lost or twice, no page is longer than it may be, and each goes on."""
    at = 0
    pages = []
    while at < len(text):
        end = end_of(text, at, length)
        assert at < end <= at + length
        pages.append(text[at:end])
        at = end
    assert "".join(pages) == text


@pytest.mark.parametrize(
    "text, length, page",
    [
        ("one two", 100, "one two"),
        ("first paragraph\n\nsecond one", 22, "first paragraph\n\n"),
        ("a line of words\nanother line", 20, "a line of words\n"),
        ("words and words and words", 12, "words and "),
        ("a\n\nvery long line without a good place", 30, "a\n\nvery long line without a "),
        ("x" * 10, 4, "xxxx"),
        ("abce\u0301fg", 4, "abc"),
        ("abc\U0001f469\U0001f3fd\u200d\U0001f4bbde", 6, "abc"),
        ("abc\U0001f469\U0001f3fdde", 4, "abc"),
    ],
)
def test_pages_end_at_good_places(text: str, length: int, page: str) -> None:
    """With a paragraph, a line or a word, and never between a letter and its accent."""
    assert text[: end_of(text, 0, length)] == page


def test_a_letter_with_a_thousand_accents_ends_nothing() -> None:
    """A page still goes on where there is no good place at all."""
    assert end_of("e" + "\u0301" * 1000, 0, 500) == 500


def test_what_no_reader_sees_is_taken_out() -> None:
    """Control characters and the tag characters; what languages need stays."""
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey me")
    assert clean(f"a\0b\x1b[31m{hidden}c\r\nd\re\tf\u200d\u200f") == "ab[31mc\nd\ne\tf\u200d\u200f"


@pytest.mark.parametrize(
    "text, seen",
    [
        ("x" + "".join(chr(0xE0100 + ord(char)) for char in "obey me"), "x"),
        ("x" + "\ufe00\ufe01" * 20, "x"),
        ("\U0001f60a\U000e0153y", "\U0001f60ay"),
        ("a" + "\u200b\u200c\u200d\u2060" * 8 + "b", "ab"),
        ("a\x9b31mb\ufeff", "a31mb"),
        ("\u845b\U000e0100 \u2764\ufe0f \u0646\u200c\u0647 \U0001f469\u200d\U0001f4bb", None),
    ],
)
def test_messages_in_characters_without_a_form(text: str, seen: str | None) -> None:
    """Selectors of forms and zero widths in numbers say something to a model alone; one by one they
    belong to the writing.
    """
    assert clean(text) == (text if seen is None else seen)


def test_headings_but_for_those_in_code() -> None:
    """With their levels, and where they stand."""
    text = (
        "# One\n\ntext\n\n```py\n# a comment\n~~~\n```\n\n## Two #\n~~~\n# "
        "no\n```\n~~~\n#no\n###### Six\n"
    )
    found = headings_of(text)
    assert [(one.level, one.title) for one in found] == [(1, "One"), (2, "Two #"), (6, "Six")]
    assert all(text[one.start :].startswith("#") for one in found)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "1",
        "0123456789abcdef.1",
        *(encode_cursor(made_up, "fetch") for made_up in ("x", ["x"], ["x", -1], ["x", "1"])),
        encode_cursor(["x", 1], "git"),
    ],
)
def test_what_is_no_cursor(sent: str) -> None:
    """Only what was given is taken."""
    with pytest.raises(ToolError, match="not a cursor"):
        place_of(sent)
    assert place_of(cursor_of(digest_of("text"), 7)) == TextPlace(digest_of("text"), 7)


@pytest.mark.parametrize(
    "said, first, last",
    [(None, 1, 2000), ("3", 3, 3), ("3-7", 3, 7), (" 3 - ", 3, 2002), ("1-1", 1, 1)],
)
def test_pages_of_a_pdf(said: str | None, first: int, last: int) -> None:
    """A page, some, and all from one on."""
    assert leaves(said) == (first, last)
    for wrong in ("0", "7-3", "-3", "all", "1,2", "1234567"):
        with pytest.raises(ToolError, match="is not a range of pages"):
            leaves(wrong)


# Encodings.


@pytest.mark.parametrize(
    "body, header, encoding, text",
    [
        ("Grüße".encode(), "", "utf-8", "Grüße"),
        (b"\xef\xbb\xbfGr\xc3\xbc\xc3\x9fe", "text/html; charset=latin1", "utf-8", "Grüße"),
        ("Grüße".encode("utf-16"), "text/html", "utf-16-le", "Grüße"),
        (b"\xfe\xff" + "ü".encode("utf-16-be"), "", "utf-16-be", "ü"),
        (b"Gr\xfc\xdfe", "text/html; charset=iso-8859-1", "cp1252", "Grüße"),
        (b"\x80", "text/html; charset=ISO-8859-1", "cp1252", "€"),
        (b"Gr\xfc\xdfe", "", "cp1252", "Grüße"),
        (b'<meta charset="windows-1251">\xcf\xf0', "text/html", "cp1251",
            '<meta charset="windows-1251">Пр'),
        (b"<META http-equiv=x content='text/html; charset=koi8-r'>\xf0", "", "koi8-r",
            "<META http-equiv=x content='text/html; charset=koi8-r'>П"),
        (b'<?xml version="1.0" encoding="shift_jis"?>\x93\xfa', "", "cp932",
            '<?xml version="1.0" encoding="shift_jis"?>日'),
        (b'<meta charset="utf-16">\xc3\xbc', "", "utf-8", '<meta charset="utf-16">ü'),
        (b'<meta charset="windows-1251">\xc3\xbc', 'text/html; charset="utf-8"', "utf-8",
            '<meta charset="windows-1251">ü'),
        (b"a\xffb", "text/html; charset=utf-8", "utf-8", "a\ufffdb"),
        (b"\xb0\xa1", "text/html;charset=gb2312", "gb18030", "啊"),
        (b" " * 2000 + b'<meta charset="koi8-r">\xc3\xbc', "", "utf-8",
            " " * 2000 + '<meta charset="koi8-r">ü'),
        (b"", "", "utf-8", ""),
    ],
)  # fmt: skip
def test_encodings(body: bytes, header: str, encoding: str, text: str) -> None:
    """A mark counts before the header, the header before the page's own word, and that before a
    guess.
    """
    assert decoded(body, header, markup=True) == (text, encoding)


@pytest.mark.parametrize(
    "name",
    [
        "punycode",
        "idna",
        "unicode_escape",
        "utf-7",
        "zlib",
        "rot13",
        "hex",
        "base64",
        "undefined",
        "mbcs",
        "cp65001",
    ],
)
def test_encodings_that_the_web_does_not_have(name: str) -> None:
    """What only Python knows is not looked up, whoever says it."""
    body = b"\\u0041+AGE-" + f'<meta charset="{name}">'.encode()
    assert decoded(body, f"text/html; charset={name}", markup=True) == (body.decode(), "utf-8")


# Types.


@pytest.mark.parametrize(
    "said, body, found",
    [
        ("text/html; charset=utf-8", b"%PDF-", "text/html"),
        ("", b"<!DOCTYPE html><p>", "text/html"),
        ("", b"  <!-- x --><html>", "text/html"),
        ("application/octet-stream", b"%PDF-1.4", "application/pdf"),
        ("application/octet-stream", b"RIFF1234WEBPx", "image/webp"),
        ("binary/octet-stream", b"plain words", "text/plain"),
        ("", "ü".encode() * 3000, "text/plain"),
        ("", b"\x00\x01", ""),
        ("", b"\xff\xfe\x00", ""),
        ("no type at all", b"words", "text/plain"),
        ("image/<script>", b"\x89PNG\r\n\x1a\n", "image/png"),
    ],
)
def test_types(said: str, body: bytes, found: str) -> None:
    """What is said counts where it says something; else the first bytes do."""
    assert type_of({"content-type": said}, body) == found


# Addresses.


@pytest.mark.parametrize(
    "said, meant",
    [
        ("example.com", "https://example.com"),
        (" example.com/a b?c#d ", "https://example.com/a%20b?c"),
        ("example.com:8443/x", "https://example.com:8443/x"),
        ("http://example.com/a/../b/./c", "http://example.com/b/c"),
        ("https://example.com/a/%2e%2E/private", "https://example.com/private"),
        ("https://example.com/../../x/..", "https://example.com/"),
        ("https://example.com//a?x=/../y", "https://example.com//a?x=/../y"),
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("localhost:8000/x", "localhost:8000/x"),
        ("https://[::1", "https://[::1"),
    ],
)
def test_addresses(said: str, meant: str) -> None:
    """As they were meant; steps to and fro are taken, so that robots.txt is asked about what is
    asked for.
    """
    assert address(said) == meant


# Settings.


def test_settings_are_read_from_the_environment() -> None:
    """Each by its name; what makes no sense is named."""
    found = settings_of(
        FetchSettings,
        PREFIX,
        {
            "INTERLOCK_FETCH_BYTES": "10",
            "INTERLOCK_FETCH_HOSTS": "a.example, *.b.example",
            "INTERLOCK_FETCH_ROBOTS": "IGNORE",
            "INTERLOCK_FETCH_PLAIN_HTTP": "0",
            "INTERLOCK_FETCH_USER_AGENT": "MyReader/2 (me)",
        },
    )
    assert (found.bytes, found.hosts, found.robots, found.plain_http) == (
        10,
        ("a.example", "*.b.example"),
        "ignore",
        False,
    )
    assert (found.user_agent, found.token, FetchSettings(user_agent="1").token) == (
        "MyReader/2 (me)",
        "MyReader",
        "InterlockFetch",
    )
    for name, value in (
        ("BYTES", "many"),
        ("SECONDS", "0"),
        ("PAGE", "-1"),
        ("ROBOTS", "sometimes"),
        ("USER_AGENT", "ü"),
        ("PLAIN_HTTP", "perhaps"),
    ):
        with pytest.raises(ValueError, match=f"INTERLOCK_FETCH_{name}='?{value}"):
            settings_of(FetchSettings, PREFIX, {f"INTERLOCK_FETCH_{name}": value})


def test_a_server_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks and hosts that are none are said before anybody connects."""
    monkeypatch.setenv("INTERLOCK_FETCH_NETWORKS", "10.0.0.0/99")
    with pytest.raises(ValueError, match=r"10\.0\.0\.0/99"):
        server_of()
    monkeypatch.delenv("INTERLOCK_FETCH_NETWORKS")
    with pytest.raises(ValueError, match="a b"):
        server_of("a b")


@pytest.mark.parametrize("name", [known.name for known in msgspec.structs.fields(FetchSettings)])
def test_settings_are_as_stated(name: str) -> None:
    """The page has each of them with what it is unless told otherwise."""
    value = getattr(FetchSettings(), name)
    if value == ():
        said = "none"
    elif isinstance(value, str):
        said = value
    else:
        said = f"{int(value):,}"
    page = (Path(__file__).parents[5] / "docs" / "servers" / "fetch.md").read_text(encoding="utf-8")
    (row,) = [
        line
        for line in page.splitlines()
        if line.startswith("|") and f"`{name.upper()}`" in line.split("|")[1]
    ]
    names = re.findall(r"`(\w+)`", row.split("|")[1])
    assert row.split("|")[2].strip().split("; ")[names.index(name.upper())] == said
