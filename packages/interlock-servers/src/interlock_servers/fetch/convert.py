"""Converts HTML and PDFs to text in child processes with limits on time, memory and output.

A hostile document may exploit or exhaust the libraries that parse it. It harms only its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from interlock import ToolError

from ..processes import Process, read_into, running

# Environment variables: where Python and its libraries are, and no secrets.
_KEPT = (
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
)
_PROGRAM = str(Path(__file__).with_name("convert_program.py"))
_MISSING = 3  # exit code
_AT_ONCE = max(2, min(4, os.cpu_count() or 1))
_FEWEST = 4 * 1024 * 1024  # bytes of text that are always allowed as output


class ConvertedHtml(Struct):
    """The text of a page and its metadata. Links are pairs of text and address."""

    text: str
    title: str | None = None
    description: str | None = None
    language: str | None = None
    links: list[tuple[str, str]] = field(default_factory=list)
    more_links: bool = False


class ConvertedPdf(Struct):
    """Pages of a PDF: their number, the texts from page `first` on, and whether time ran out."""

    count: int
    title: str | None
    first: int
    texts: list[str]
    cut: bool = False


class DocumentConverter:
    """Converts a few documents at a time. `seconds` and `memory` (bytes) limit each of them."""

    def __init__(self, seconds: float, memory: int) -> None:
        self.seconds = seconds
        self.memory = memory
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def of_html(
        self,
        page: str,
        url: str,
        *,
        form: Literal["markdown", "plain"] = "markdown",
        main: bool = True,
        links: bool = False,
    ) -> ConvertedHtml:
        """The text of a page. Its links are relative to `url`; `main` leaves out navigation and the
        like.

        Raises ToolError.
        """
        job = {"kind": "html", "url": url, "format": form, "main": main, "links": links}
        said, whole = await self._done(job, page.encode("utf-8", "replace"), "servers")
        if not said or not whole:
            raise ToolError(
                f"This page cannot be converted within {self.seconds:g} seconds and "
                f'{self.memory // 2**20} MiB. Request its HTML with format "html".'
            )
        found = said[0]
        found["links"] = [(words, href) for words, href in found.get("links", [])]
        return ConvertedHtml(**found)

    async def of_pdf(self, data: bytes, first: int, last: int) -> ConvertedPdf:
        """The texts of some pages, counted from 1. Raises ToolError."""
        said, whole = await self._done({"kind": "pdf", "pages": [first, last]}, data, "pdf")
        if said and "error" in said[0]:
            raise ToolError(f"The PDF {said[0]['error']}.")
        if not said or (not whole and len(said) == 1):
            raise ToolError(
                f"This PDF cannot be read within {self.seconds:g} seconds and "
                f"{self.memory // 2**20} MiB."
            )
        texts = [str(one["text"]) for one in said[1:]]
        return ConvertedPdf(int(said[0]["count"]), said[0]["title"], first, texts, cut=not whole)

    async def _done(
        self, job: dict[str, Any], data: bytes, extra: str
    ) -> tuple[list[dict[str, Any]], bool]:
        """The output of the program for a job, and whether it is complete."""
        head = msgspec.json.encode({**job, "seconds": self.seconds, "memory": self.memory}) + b"\n"
        most = max(_FEWEST, 4 * len(data))
        said = bytearray()
        code = -1
        async with self._free, _started(head + data) as process:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.seconds):
                    if await read_into(said, process, most):
                        code = await process.wait()
        if code == _MISSING:
            what = "PDFs needs pypdf" if extra == "pdf" else "HTML needs html-to-markdown"
            raise ToolError(f"Reading {what}: pip install 'interlock[{extra}]' on the server.")
        lines = bytes(said).split(b"\n")[:-1]  # without an incomplete last line
        return await asyncio.to_thread(
            lambda: [msgspec.json.decode(line) for line in lines]
        ), code == 0


def _started(feed: bytes) -> AbstractAsyncContextManager[Process]:
    """Start the program, with the few environment variables that Python needs."""
    env = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return running((sys.executable, "-P", _PROGRAM), env=env, feed=feed, errors=False)
