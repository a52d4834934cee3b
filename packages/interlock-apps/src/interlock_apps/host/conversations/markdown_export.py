"""Export of a conversation to Markdown.

Texts of models and servers are untrusted, and a reader may show the file with a program that
renders HTML and loads images. Therefore these texts can contain neither: outside code, the
characters that begin a tag or an image are written as character references, which have no syntax in
Markdown. Links lead to http, https and mailto only. Arguments and results are code.
"""

from __future__ import annotations

import re
import time

import msgspec

from .transcript import Call, Form, Message, Part, Picture, Transcript, visible

_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")
_RUN = re.compile(r"`{3,}|~{3,}")
_SAFE = r"(?!\s*(?:https?:|mailto:))"
_LINK = re.compile(rf"\]\({_SAFE}", re.IGNORECASE)
_DEFINITION = re.compile(rf"\]:{_SAFE}", re.IGNORECASE)
_SYNTAX = re.compile(r"[\\`*_{}\[\]<>()#+!|~&]")


def to_markdown(transcript: Transcript) -> str:
    """A conversation as Markdown (CommonMark with tables)."""
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(transcript.began))
    head = f"# {_line(transcript.title or 'Conversation')}\n\n*{_line(transcript.model)}, {day}*"
    return "\n\n".join([head, *(_part(part) for part in transcript.parts)]) + "\n"


def _part(part: Part) -> str:
    if isinstance(part, Message):
        return _message(part)
    if isinstance(part, Call):
        return _call(part)
    if isinstance(part, Form):
        entered = (
            "Declined, or not answered."
            if part.content is None
            else fenced(_json(part.content), "json")
        )
        return f"### {_line(part.server)} asks\n\n{inert(part.message)}\n\n{entered}"
    return f"*{_line(part.words)}*"


def _message(message: Message) -> str:
    who = _line(message.model) if message.model else "You"
    parts = [f"## {who}", *(f"*{_line(remark)}*" for remark in message.remarks)]
    if message.text.strip():
        parts.append(inert(message.text))
    return "\n\n".join([*parts, *_pictures(message.pictures)])


def _call(call: Call) -> str:
    of = f" of {_line(call.server)}" if call.server else ""
    parts = [
        f"### Call of {_line(call.tool)}{of}",
        fenced(_json(call.arguments), "json"),
        f"*{_line(call.outcome)}*",
        *(f"*Warning: {_line(words)}*" for words in call.warnings),
    ]
    if call.text:
        parts.append(fenced(visible(call.text)))
    return "\n\n".join([*parts, *_pictures(call.pictures)])


def _pictures(pictures: tuple[Picture, ...]) -> list[str]:
    return [
        f"*An image, {_line(each.mime_type)}, {len(each.data) * 3 // 4:,} bytes*"
        for each in pictures
    ]


def fenced(text: str, language: str = "") -> str:
    """A text as a block of code, whatever it contains."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def inert(text: str) -> str:
    """Markdown without tags, images, and links to anything but pages and mail addresses.

    Fenced code at the margin stays as it is: nothing in it is rendered. All other text counts as
    outside code, and its fences are removed: where indented code ends is easily mistaken.
    """
    done: list[str] = []
    outside: list[str] = []
    fence = ""
    for line in visible(text).split("\n"):
        if fence:
            done.append(line)
            if _closes(line, fence):
                fence = ""
            continue
        if (found := _FENCE.fullmatch(line)) and not (found[1][0] == "`" and "`" in found[2]):
            done.append(_outside("\n".join(outside)) if outside else "")
            outside = []
            fence = found[1]
            done.append(fence + re.sub(r"[^\w+#.-]", "", found[2]))
            continue
        outside.append(line)
    if outside:
        done.append(_outside("\n".join(outside)))
    if fence:
        done.append(fence)
    return "\n".join(done).strip("\n")


def _closes(line: str, fence: str) -> bool:
    closing = re.fullmatch(r" {0,3}([`~]+)[ \t]*", line)
    return closing is not None and set(closing[1]) == {fence[0]} and len(closing[1]) >= len(fence)


def _outside(text: str) -> str:
    text = _RUN.sub(lambda run: f"&#{ord(run[0][0])};" * len(run[0]), text)
    text = text.replace("<", "&lt;").replace("![", "!&#91;")
    return _DEFINITION.sub("]&#58;", _LINK.sub("]&#40;", text))


def _line(text: str) -> str:
    """A text in one line, without any syntax of Markdown."""
    words = " ".join(visible(text).split())
    return _SYNTAX.sub(lambda sign: f"&#{ord(sign[0])};", words)


def _json(value: object) -> str:
    return visible(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode())
