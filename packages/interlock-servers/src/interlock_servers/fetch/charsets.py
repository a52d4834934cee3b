"""Detects the encoding of a page by byte order mark, header and `<meta>`, as browsers do."""

from __future__ import annotations

import codecs
import re

_HEAD = 1024  # bytes in which a page declares its encoding (HTML, "prescan")
_HEADER = re.compile(r"""charset\s*=\s*["']?\s*([\w.:+-]{1,40})""", re.IGNORECASE | re.ASCII)
_META = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:+-]{1,40})""", re.IGNORECASE)
_XML = re.compile(rb"""\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:+-]{1,40})""", re.IGNORECASE)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# The labels of the web and their codecs (WHATWG Encoding). Other labels are not looked up: Python
# has codecs that are slow on crafted text (idna, punycode) or interpret escapes (unicode_escape),
# and they do not occur on the web.
_LABELS = {
    **dict.fromkeys(("utf-8", "utf8", "unicode-1-1-utf-8", "x-unicode20utf8"), "utf-8"),
    **dict.fromkeys(
        (
            "iso-8859-1",
            "iso8859-1",
            "latin1",
            "latin-1",
            "l1",
            "ascii",
            "us-ascii",
            "windows-1252",
            "cp1252",
        ),
        "cp1252",
    ),
    **dict.fromkeys(("iso-8859-9", "latin5", "windows-1254", "cp1254"), "cp1254"),
    **dict.fromkeys(("tis-620", "iso-8859-11", "windows-874"), "cp874"),
    **{f"iso-8859-{n}": f"iso8859-{n}" for n in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    **{f"windows-{n}": f"cp{n}" for n in (1250, 1251, 1253, 1255, 1256, 1257, 1258)},
    **dict.fromkeys(("gb2312", "gbk", "gb18030", "x-gbk", "gb_2312-80"), "gb18030"),
    **dict.fromkeys(("big5", "big5-hkscs", "x-x-big5"), "big5hkscs"),
    **dict.fromkeys(
        ("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j", "ms_kanji"), "cp932"
    ),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987", "ksc5601", "windows-949"), "cp949"),
    "latin2": "iso8859-2",
    "latin9": "iso8859-15",
    "euc-jp": "euc_jp",
    "x-euc-jp": "euc_jp",
    "iso-2022-jp": "iso2022_jp",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "ibm866": "cp866",
    "cp866": "cp866",
    "macintosh": "mac-roman",
    "x-mac-cyrillic": "mac-cyrillic",
    "utf-16": "utf-16-le",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
}


def decoded(body: bytes, content_type: str = "", *, markup: bool = False) -> tuple[str, str]:
    """Decode a body; return its text and the encoding. Invalid bytes become U+FFFD.

    The order is: a byte order mark; the header's `charset`; in markup, the page's own declaration;
    UTF-8 if the body is valid UTF-8; otherwise windows-1252, in which every byte has a meaning.
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace"), name
    said = _HEADER.search(content_type)
    codec = _LABELS.get(said[1].lower()) if said else None
    if codec is None and markup:
        codec = _own_word(body)
    if codec is not None:
        return body.decode(codec, "replace"), codec
    try:
        return body.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace"), "cp1252"


def _own_word(body: bytes) -> str | None:
    """The encoding that a page declares. The declaration is in ASCII, so it cannot be UTF-16."""
    said = _XML.match(body[:_HEAD]) or _META.search(body[:_HEAD])
    codec = _LABELS.get(said[1].decode("ascii", "replace").lower()) if said else None
    return "utf-8" if codec is not None and codec.startswith("utf-16") else codec
