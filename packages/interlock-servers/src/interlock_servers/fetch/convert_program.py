"""Child program that converts one HTML page or PDF to text, so that a crash or hang stays there.

It reads a line of JSON and the document from its input, and writes lines of JSON. It imports only
the standard library at first, so that it starts quickly.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from typing import Any

_HEAD = 256 * 1024  # characters at the start of a page that contain its title
_MOST_LINKS = 5_000
_LINE = 300  # characters of a title or of the text of a link
# Parts around the main text of most pages. Forms are unwrapped, not removed, because some sites put
# the whole page into one.
_AROUND = [
    "nav",
    "footer",
    "aside",
    "button",
    "select",
    "input",
    "dialog",
    "[role=navigation]",
    "[role=banner]",
    "[role=contentinfo]",
    "[role=complementary]",
    "[role=search]",
]
_NEVER_SHOWN = ["datalist", "iframe"]  # their content is for browsers that do not support them


def main() -> None:
    """Run one job. Exit code 3: the required library is not installed."""
    job: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    _bound(job["memory"], job["seconds"])
    data = sys.stdin.buffer.read()
    try:
        if job["kind"] == "html":
            _say(**html(data.decode(), job))
        else:
            pdf(data, job["pages"])
    except ImportError:
        sys.exit(3)


def html(page: str, job: dict[str, Any]) -> dict[str, Any]:
    """The text of a page, its title, description and language, and its links if requested."""
    import html_to_markdown as library  # optional extra `servers`

    def convert(source: str, leave_out: list[str], metadata: bool = False) -> Any:
        options = library.ConversionOptions(
            extract_metadata=metadata,
            base_url=job["url"],
            inline_data_media="alt_text_only",
            compact_tables=True,
            output_format=job["format"],
            exclude_selectors=[*_NEVER_SHOWN, *leave_out],
            preprocessing=library.PreprocessingOptions(enabled=False),
        )
        return library.convert(source, options)

    text = convert(page, _AROUND if job["main"] else []).content or ""
    if job["main"] and not text.strip():  # the whole text is in parts left out otherwise
        text = convert(page, []).content or ""
    ended = re.search(r"</head\s*>", page[:_HEAD], re.IGNORECASE)
    about = convert(page[: ended.end() if ended else _HEAD], [], metadata=True).metadata.document
    language = re.match(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", about.language or "")
    found = {
        "text": text,
        "title": _line(about.title),
        "description": _line(about.description),
        "language": language and language[0],
    }
    if job["links"]:
        links = convert(page, [], metadata=True).metadata.links
        found["links"] = [[_line(link.text) or "", link.href] for link in links[:_MOST_LINKS]]
        found["more_links"] = len(links) > _MOST_LINKS
    return found


def pdf(data: bytes, pages: list[int]) -> None:
    """Print the number of pages, then each requested page as soon as it is read."""
    import logging  # pypdf logs every fault of a file

    from pypdf import PdfReader  # optional extra `pdf`
    from pypdf.errors import PyPdfError

    logging.disable()
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            _say(error="is encrypted, and needs a password")
            return
        count = len(reader.pages)
        about = reader.metadata
        _say(count=count, title=_line(str(about.title or "")) if about is not None else None)
    except (
        PyPdfError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as bad:
        _say(error=f"cannot be read as a PDF: {_line(str(bad)) or type(bad).__name__}")
        return
    first, last = pages
    for number in range(first, min(last, count) + 1):
        try:
            text = reader.pages[number - 1].extract_text()
        except MemoryError:
            raise
        except Exception as bad:  # one broken page must not affect the others
            text = f"(This page cannot be read: {_line(str(bad)) or type(bad).__name__})"
        _say(page=number, text=text)


def _line(text: str | None) -> str | None:
    return " ".join((text or "")[: 4 * _LINE].split())[:_LINE] or None


def _say(**what: Any) -> None:
    # A document may contain lone surrogates, which are not valid Unicode and which the reader of
    # these lines would reject.
    sys.stdout.buffer.write(json.dumps(what, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()


def _bound(memory: int, seconds: float) -> None:
    """Limit memory and processor time, if the platform can; files cannot be written."""
    try:
        import resource  # not on every platform
    except ImportError:
        return
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, int(seconds) + 2),
        (resource.RLIMIT_FSIZE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):  # a platform may not support a limit
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
