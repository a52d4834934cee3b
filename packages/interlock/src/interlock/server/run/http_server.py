"""An HTTP server in the caller's event loop: awaited, or open for the length of a block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Self

from ...keywords import check_keywords
from .http import serve_web
from .interface import ServedServer
from .options import HttpOptions

_ANY = {
    "0.0.0.0": "127.0.0.1",
    "::": "::1",
}  # addresses that stand for all, and one that a client can use


class HttpServer:
    """A server over HTTP, in one of two forms; see `Server.serve_http`.

    `await` serves until the task is cancelled. `async with` serves for the length of the block,
    which begins once the server can be reached. Both end in good order: no more requests are let
    in, streams end, and running calls have `grace` seconds. A second cancellation ends them at
    once. Signals are left to the program.
    """

    def __init__(
        self,
        server: ServedServer,
        options: dict[str, Any],
        *,
        on_ready: Callable[[Any], None] | None = None,
        is_program: bool = False,
    ) -> None:
        check_keywords(options, HttpOptions.__annotations__, "server.serve_http()")
        self._server = server
        self._options = options
        self._on_ready = on_ready
        self._is_program = is_program
        self._task: asyncio.Task[None] | None = None
        self._address: tuple[Any, ...] | str | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The address and the port at which it listens; of a Unix socket the path and 0. Raises
        RuntimeError where it does not listen.
        """
        if self._address is None:
            raise RuntimeError(
                "the HTTP server does not listen: its address is known within its block"
            )
        if isinstance(self._address, str):  # the path of a Unix socket
            return self._address, 0
        return self._address[0], self._address[1]

    @property
    def port(self) -> int:
        """The port at which it listens; with `port=0` one that was free."""
        return self.address[1]

    @property
    def url(self) -> str:
        """The URL of the endpoint, for clients on this machine."""
        host, port = self.address
        scheme = "http" if self._options.get("tls") is None else "https"
        host = _ANY.get(host, host)
        return (
            f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
            f"{self._options.get('path', '/mcp')}"
        )

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise RuntimeError("this HTTP server serves already, or has served: make another one")
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[Any] = loop.create_future()
        serving = serve_web(
            self._server,
            on_ready=lambda address: None if ready.done() else ready.set_result(address),
            is_program=self._is_program,
            **self._options,
        )
        self._task = loop.create_task(serving, name="interlock-http-server")
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._end()
            raise
        if not ready.done():
            await self._end()  # raises why it could not begin
            raise RuntimeError("the HTTP server ended before it could be reached")
        self._address = ready.result()
        if self._on_ready is not None:
            self._on_ready(self._address)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end()

    def __await__(self) -> Generator[Any, None, None]:
        return self._serve().__await__()

    async def _serve(self) -> None:
        async with self:
            assert self._task is not None
            await asyncio.wait({self._task})  # it ends by itself only where it fails

    async def _end(self) -> None:
        """End it in good order. Raises what it failed with."""
        assert self._task is not None
        task = self._task
        task.cancel()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()  # whoever waits will not wait for the calls that run
            await asyncio.wait({task})
            raise
        finally:
            self._address = None
        if not task.cancelled() and (failed := task.exception()) is not None:
            raise failed
