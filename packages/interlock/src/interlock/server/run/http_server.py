"""An HTTP server in the caller's event loop: await it, or enter it for a block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, Self

from ...keywords import check_keywords
from ...transport.http.server.supervision import Supervision
from .http import serve_web
from .interface import ServedServer
from .metrics import MetricsServer
from .options import HttpOptions

_ANY = {
    "0.0.0.0": "127.0.0.1",
    "::": "::1",
}  # wildcard addresses, and an address of each kind that a client can use


class HttpServer:
    """A server over HTTP, in one of two forms; see `Server.serve_http`.

    `await` serves until the task is cancelled. `async with` serves while the block runs; the block
    begins once the server accepts connections. Both shut down gracefully: the server accepts no
    more requests, streams end, and running calls have `grace` seconds. A second cancellation ends
    the calls at once. Your program handles signals itself.
    """

    def __init__(
        self,
        server: ServedServer,
        options: dict[str, Any],
        *,
        on_ready: Callable[[Any], None] | None = None,
        supervision: Supervision | None = None,
        is_program: bool = False,
        metrics: MetricsServer | None = None,
    ) -> None:
        check_keywords(options, HttpOptions.__annotations__, "server.serve_http()")
        self._server = server
        self._options = options
        self._on_ready = on_ready
        self._supervision = supervision
        self._is_program = is_program
        self._metrics = metrics
        self._task: asyncio.Task[None] | None = None
        self._address: tuple[Any, ...] | str | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The address and the port that the server listens on; the path and 0 for a Unix socket.
        Raises RuntimeError if it does not listen.
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
        """The port that the server listens on; with `port=0` a free port that the system chose."""
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
            supervision=self._supervision,
            is_program=self._is_program,
            metrics=self._metrics,
            **self._options,
        )
        self._task = loop.create_task(serving, name="interlock-http-server")
        try:
            await asyncio.wait({self._task, ready}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._end()
            raise
        if not ready.done():
            await self._end()  # raises the error of the start
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
            await asyncio.wait({self._task})  # the task ends by itself only if it fails

    async def _end(self) -> None:
        """Shut down gracefully. Raises the error of the server if it failed."""
        assert self._task is not None
        task = self._task
        task.cancel()
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            task.cancel()  # the second cancellation: running calls get no more time
            await asyncio.wait({task})
            raise
        finally:
            self._address = None
        if not task.cancelled() and (failed := task.exception()) is not None:
            raise failed
