"""A person before the chat in this process: keys go in by a pipe, the terminal is a text, servers
are in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output.vt100 import Vt100_Output

from interlock.configs import Entry
from interlock.models.scripted import Scripted
from interlock_apps.commands.chat.dialogs import Asker
from interlock_apps.commands.chat.output import TerminalOutput
from interlock_apps.commands.chat.repl import ChatRepl
from interlock_apps.fleet.hub import HubOptions
from interlock_apps.host.app import Host
from interlock_apps.host.options import HostOptions
from tests.commands.chatting import PATIENCE, legible


class Page(io.StringIO):
    """What the terminal shows; `written` is set whenever there is more."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def write(self, text: str) -> int:
        """See StringIO."""
        self.written.set()
        return super().write(text)


class Seat:
    """The person's place:

    `see` waits until something is shown, `type` types. `opened` are pages that went to the browser.
    """

    def __init__(
        self, host: Host, talk: ChatRepl, keys: PipeInput, page: Page, opened: list[str]
    ) -> None:
        self.host = host
        self.talk = talk
        self.page = page
        self.opened = opened
        self._keys = keys
        self._mark = 0
        self.over: asyncio.Task[None]

    @property
    def text(self) -> str:
        """All that was shown, legible."""
        return legible(self.page.getvalue())

    async def see(self, pattern: str) -> str:
        """Wait until something is shown that was not seen before; what was shown up to it."""
        patience = asyncio.get_running_loop().time() + PATIENCE
        while (found := re.search(pattern, self.text[self._mark :])) is None:
            left = patience - asyncio.get_running_loop().time()
            goes_on = left > 0 and not self.over.done()
            assert goes_on, f"never shown: {pattern!r}, but:\n{self.text[self._mark :]}"
            self.page.written.clear()
            waiting = asyncio.create_task(self.page.written.wait())
            await asyncio.wait(
                {waiting, self.over}, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
            waiting.cancel()
        shown = self.text[self._mark : self._mark + found.end()]
        self._mark += found.end()
        return shown

    def type(self, keys: str) -> None:
        """Press keys."""
        self._keys.send_text(keys)

    async def answer(self, pattern: str, keys: str) -> str:
        """Wait for something, then press keys."""
        shown = await self.see(pattern)
        self.type(keys)
        return shown

    async def leave(self) -> None:
        """Leave by Ctrl-D at the line."""
        await self.answer("❯", "\x04")
        await self.end()

    async def end(self) -> None:
        """Wait until the chat is over."""
        async with asyncio.timeout(PATIENCE):
            await self.over


@contextlib.asynccontextmanager
async def seated(
    servers: Mapping[str, Any],
    *answers: Any,
    width: int = 100,
    trusted: bool = False,
    **options: Any,
) -> AsyncIterator[Seat]:
    """The chat before a host with these servers and a scripted model; `options` are the Host's."""
    entries = [Entry(id=name, url="http://127.0.0.1/", trusted=trusted) for name in servers]
    options = {"models": [Scripted(*answers)], **options}
    given = HostOptions(
        ask_to_start=options.pop("ask_to_start", False),
        hub=HubOptions(target=lambda entry: servers[entry.id]),
    )
    host = Host(entries, options=given, **options)
    page = Page()
    opened = list[str]()
    output = Vt100_Output(
        page, lambda: Size(rows=40, columns=width), term="xterm", enable_cpr=False
    )
    with create_pipe_input() as keys, create_app_session(input=keys, output=output):
        talk = ChatRepl(host, keys, TerminalOutput(output, coloured=False), pause=0)
        talk.front.ask = Asker(talk.front, talk.media, opened.append).ask
        seat = Seat(host, talk, keys, page, opened)
        seat.over = asyncio.create_task(talk.run())
        try:
            yield seat
        finally:
            seat.over.cancel()
            await asyncio.wait({seat.over})
            if not seat.over.cancelled() and (wrong := seat.over.exception()) is not None:
                raise wrong
