"""HTML and PDFs to text, each in a process of its own with bounds on time, memory and output: a document may be made to hurt."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from interlock import ToolError

_PROGRAM = str(Path(__file__).with_name("converter.py"))
_CHUNK = 256 * 1024
_MISSING = 3  # exit code
_AT_ONCE = max(2, min(4, os.cpu_count() or 1))
_FEWEST = 4 * 1024 * 1024  # bytes of text that may always come out


class Written(Struct):
    """What a page says: its text, and what is known of it. Links are pairs of words and address."""

    text: str
    title: str | None = None
    description: str | None = None
    language: str | None = None
    links: list[tuple[str, str]] = field(default_factory=list)
    more_links: bool = False


class Printed(Struct):
    """Pages of a PDF: how many there are, the texts of those that were read, from `first` on, and whether time ran out before the last."""

    count: int
    title: str | None
    first: int
    texts: list[str]
    cut: bool = False


class Workbench:
    """Where documents are converted, a few at a time. `seconds` and `memory` (bytes) are for each."""

    def __init__(self, seconds: float, memory: int) -> None:
        self.seconds, self.memory = seconds, memory
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def of_html(
        self,
        page: str,
        url: str,
        *,
        form: Literal["markdown", "plain"] = "markdown",
        main: bool = True,
        links: bool = False,
    ) -> Written:
        """The text of a page at a URL, to which its links are relative; `main` leaves out what stands around it. Raises ToolError."""
        job = {"kind": "html", "url": url, "format": form, "main": main, "links": links}
        said, whole = await self._done(job, page.encode("utf-8", "replace"), "servers")
        if not said or not whole:
            raise ToolError(
                f"This page cannot be converted within {self.seconds:g} seconds and {self.memory // 2**20} MiB. "
                'Ask for it as it is, with format "html".'
            )
        found = said[0]
        found["links"] = [(words, href) for words, href in found.get("links", [])]
        return Written(**found)

    async def of_pdf(self, data: bytes, first: int, last: int) -> Printed:
        """The texts of some pages, counted from 1. Raises ToolError."""
        said, whole = await self._done({"kind": "pdf", "pages": [first, last]}, data, "pdf")
        if said and "error" in said[0]:
            raise ToolError(f"The PDF {said[0]['error']}.")
        if not said or (not whole and len(said) == 1):
            raise ToolError(
                f"This PDF cannot be read within {self.seconds:g} seconds and {self.memory // 2**20} MiB."
            )
        texts = [str(one["text"]) for one in said[1:]]
        return Printed(int(said[0]["count"]), said[0]["title"], first, texts, cut=not whole)

    async def _done(
        self, job: dict[str, Any], data: bytes, extra: str
    ) -> tuple[list[dict[str, Any]], bool]:
        """What the program said of a job, and whether that is all of it."""
        head = msgspec.json.encode({**job, "seconds": self.seconds, "memory": self.memory}) + b"\n"
        said = bytearray()
        async with self._room:
            process = await _started()
            feeding = asyncio.ensure_future(_feed(process, head, data))
            try:
                async with asyncio.timeout(self.seconds):
                    ended = await _read(process, max(_FEWEST, 4 * len(data)), said)
                    code = await process.wait() if ended else -1
            except TimeoutError:
                code = -1
            finally:
                feeding.cancel()
                await _end(process)
        if code == _MISSING:
            what = "PDFs needs pypdf" if extra == "pdf" else "HTML needs html-to-markdown"
            raise ToolError(
                f"Reading {what}: pip install 'interlock[{extra}]', where this server runs."
            )
        lines = bytes(said).split(b"\n")[:-1]  # without one that was not written to its end
        return await asyncio.to_thread(
            lambda: [msgspec.json.decode(line) for line in lines]
        ), code == 0


async def _started() -> asyncio.subprocess.Process:
    """The program, which sees nothing of the environment but where Python is to look; nobody but us may end it halfway."""
    kept = (
        "PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "SYSTEMROOT",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
    )
    pipe = asyncio.subprocess.PIPE
    seen = {name: os.environ[name] for name in kept if name in os.environ}
    command = (sys.executable, "-P", _PROGRAM)
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *command,
            env=seen,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    )
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with contextlib.suppress(OSError):
            await _end(await asyncio.shield(starting))
        raise


async def _feed(process: asyncio.subprocess.Process, *pieces: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            process.stdin.write(piece)
        await process.stdin.drain()
        process.stdin.close()


async def _read(process: asyncio.subprocess.Process, most: int, said: bytearray) -> bool:
    """Take in what the program says; False where that is more than it may say."""
    assert process.stdout is not None
    while data := await process.stdout.read(_CHUNK):
        said += data
        if len(said) > most:
            return False
    return True


async def _end(process: asyncio.subprocess.Process) -> None:
    """End the program, and let go of its pipes."""
    try:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await asyncio.shield(process.wait())
    finally:
        process._transport.close()  # type: ignore[attr-defined]  # nothing public closes pipes that nobody reads to their end
