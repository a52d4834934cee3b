"""Export of a conversation to one HTML file.

The file loads nothing: a Content-Security-Policy in it allows only its own style and images that
are in the file. Texts of models and servers are escaped. Markdown of models is rendered without
HTML and images, and links lead to http, https and mailto only.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Sequence
from html import escape
from typing import Any

import msgspec

from .transcript import Call, Form, Message, Part, Picture, Transcript, visible

_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SCHEMES = ("http://", "https://", "mailto:")
_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 48rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
header, footer { color: light-dark(#555, #aaa); }
h1 { margin-bottom: 0.25rem; line-height: 1.25; color: CanvasText; }
h2 { font-size: 0.875rem; margin: 0 0 0.25rem; color: light-dark(#555, #aaa); }
article { margin: 1.25rem 0; }
.you { border-radius: 12px; padding: 0.75rem 1rem; background: light-dark(#e7f1ec, #1d2b25); }
.plain { white-space: pre-wrap; }
.remark { color: light-dark(#555, #aaa); font-size: 0.875rem; }
.warning { color: light-dark(#8a4b00, #f0b35f); }
details { border: 1px solid light-dark(#ccc, #444); border-radius: 8px; padding: 0.5rem 0.75rem; }
summary { cursor: pointer; }
pre { overflow: auto; padding: 0.75rem; border-radius: 8px; background: light-dark(#f3f3f0, #222); }
pre { white-space: pre-wrap; }
table { border-collapse: collapse; }
td, th { border: 1px solid light-dark(#ccc, #444); padding: 0.25rem 0.5rem; }
img { max-width: 100%; }
time { font-size: 0.8125rem; color: light-dark(#555, #aaa); }
@media print { details > * { display: block; } }
"""
POLICY = (
    "default-src 'none'; style-src 'sha256-"
    f"{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
"""The Content-Security-Policy of the file."""


def to_html(transcript: Transcript) -> str:
    """A conversation as one HTML file."""
    title = escape(visible(transcript.title) or "Conversation")
    parts = "\n".join(_part(part) for part in transcript.parts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{title}</h1>
<p>{escape(visible(transcript.model))}, {_time(transcript.began)}</p>
</header>
<main>
{parts}
</main>
</body>
</html>
"""


def _part(part: Part) -> str:
    if isinstance(part, Message):
        return _message(part)
    if isinstance(part, Call):
        return _call(part)
    if isinstance(part, Form):
        entered = (
            '<p class="remark">Declined, or not answered.</p>'
            if part.content is None
            else _code(_json(part.content))
        )
        return (
            f"<article><h2>{escape(visible(part.server))} asks</h2>"
            f"{_plain(part.message)}{entered}</article>"
        )
    return f'<p class="remark">{escape(visible(part.words))}</p>'


def _message(message: Message) -> str:
    who = visible(message.model) if message.model else "You"
    remarks = "".join(f'<p class="remark">{escape(visible(r))}</p>' for r in message.remarks)
    text = _rendered(message.text) if message.model else _plain(message.text)
    kind = "model" if message.model else "you"
    return (
        f'<article class="{kind}"><h2>{escape(who)}</h2>{remarks}{text}'
        f"{_images(message.pictures)}{_time(message.at)}</article>"
    )


def _call(call: Call) -> str:
    of = f" of {escape(visible(call.server))}" if call.server else ""
    warnings = "".join(
        f'<p class="remark warning">Warning: {escape(visible(words))}</p>'
        for words in call.warnings
    )
    return (
        f"<details><summary><strong>{escape(visible(call.tool))}</strong>{of}: "
        f"{escape(visible(call.outcome))}</summary>"
        f"{_code(_json(call.arguments))}{_code(call.text) if call.text else ''}</details>"
        f"{warnings}{_images(call.pictures)}"
    )


def _images(pictures: Sequence[Picture]) -> str:
    shown = []
    for each in pictures:
        if each.mime_type in _PICTURES and _BASE64.fullmatch(each.data):
            shown.append(
                f'<p><img alt="An image" src="data:{each.mime_type};base64,{each.data}"></p>'
            )
        else:
            shown.append(f'<p class="remark">An image, {escape(visible(each.mime_type))}</p>')
    return "".join(shown)


def _rendered(text: str) -> str:
    """The Markdown of a model as HTML."""
    from markdown_it import MarkdownIt  # late: only an export to HTML needs it

    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    parser.enable(["table", "strikethrough"]).disable("image")
    parser.validateLink = _is_safe_link  # type: ignore[method-assign]  # as its documentation says
    parser.add_render_rule("link_open", _link)
    rendered: str = parser.render(visible(text))
    return rendered


def _is_safe_link(url: str) -> bool:
    return url.lower().startswith(_SCHEMES)


def _link(renderer: Any, tokens: Any, index: int, options: Any, env: Any) -> str:
    tokens[index].attrSet("rel", "noreferrer noopener")
    rendered: str = renderer.renderToken(tokens, index, options, env)
    return rendered


def _plain(text: str) -> str:
    return f'<p class="plain">{escape(visible(text))}</p>' if text.strip() else ""


def _code(text: str) -> str:
    return f"<pre><code>{escape(visible(text))}</code></pre>"


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()


def _time(at: float) -> str:
    shown = time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    exact = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
    return f'<time datetime="{exact}">{shown}</time>'
