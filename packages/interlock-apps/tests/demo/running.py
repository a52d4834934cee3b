"""`interlock demo` as a process of its own, from its address to its end, and pages of a browser
that open it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[4]
SHOTS = os.environ.get("INTERLOCK_SHOTS") or (str(ROOT / ".shots") if os.environ.get("CI") else "")
DESKTOP = {"width": 1320, "height": 860}
TELEPHONE = {"width": 360, "height": 740}


class Demo:
    """The demo as it runs: where it keeps things, and the address that it printed.

    `troubles` is what pages complained of.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, folder: Path, address: str, chromium: Any
    ) -> None:
        self.process = process
        self.folder = folder
        self.address = address
        self.troubles: list[str] = []
        self.contexts: list[Any] = []
        self._chromium = chromium

    async def open(
        self, *, size: dict[str, int] = DESKTOP, dark: bool = False, **options: Any
    ) -> Any:
        """A page of a new browser profile that has opened the printed address; all servers are
        up.
        """
        context = await self._chromium.new_context(
            viewport=size, color_scheme="dark" if dark else "light", **options
        )
        self.contexts.append(context)
        page = await self.tab(context)
        await page.goto(self.address)
        await page.get_by_role("button", name="Plan a vacation").wait_for()
        return page

    async def tab(self, context: Any) -> Any:
        """Another tab of the same profile, whose complaints are heard: errors, warnings, what the
        content-security policy refused.
        """
        page = await context.new_page()
        page.set_default_timeout(120_000)  # milliseconds; others may have the cores
        page.on(
            "console",
            lambda said: (
                self.troubles.append(said.text) if said.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: self.troubles.append(f"a dialog: {dialog.message}"))
        return page

    def processes(self) -> set[int]:
        """The processes that the demo has started: its servers."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return {
            int(word)
            for children in threads
            for word in children.read_text(encoding="ascii").split()
        }


@asynccontextmanager
async def demonstrated(chromium: Any, folder: Path, *options: str) -> AsyncIterator[Demo]:
    """Run the demo in a folder; at the end it gets SIGTERM, and must leave with 0, in peace, and
    with no process left behind.
    """
    words = [sys.executable, "-P", "-m", "interlock", "demo", "--folder", str(folder), *options]
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    printed: list[str] = []
    demo = None
    try:
        while not (line := (await process.stdout.readline()).decode()).startswith("Open "):
            assert line, f"no address, but: {printed} {(await process.stderr.read()).decode()}"
            printed.append(line)
        demo = Demo(process, folder, line.split()[1], chromium)
        yield demo
        for context in demo.contexts:
            await context.close()
        servers = demo.processes()
        assert len(servers) == 4
        process.send_signal(signal.SIGTERM)
        out, complaints = await process.communicate()
        assert process.returncode == 0
        assert out.decode().splitlines()[-1] == "Ended."
        assert complaints.decode() == ""
        assert not [pid for pid in servers if alive(pid)]
    finally:
        for context in demo.contexts if demo is not None else ():
            await context.close()
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert demo.troubles == []


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
            not in "ZX"
        )
    except OSError:
        return False


async def shot(page: Any, name: str) -> None:
    """Keep a picture of the page where pictures are wanted: in the folder that INTERLOCK_SHOTS
    names, in CI in `.shots`.
    """
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        await page.screenshot(path=Path(SHOTS, f"{name}.png"))
