"""An internet of the tests' own: names with the addresses they have each time they are asked for,
and addresses that lead to servers on loopback.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from interlock.http11.proxies import Proxies
from interlock.http11.safe_fetch import SafeFetch

PUBLIC = "93.184.216.34"
OTHER = "8.8.4.4"
SIX = "2606:4700::1111"


class Internet:
    """Where a guarded fetcher of a test goes. Must be made in the event loop that it is for, which
    must be asyncio's.

    `names`: for each host its addresses the first time, the second time and so on, the last for
    ever after. Whoever listens on loopback is reached by every address that is in `routed`; at all
    others nobody listens. Nothing leaves the machine.
    """

    def __init__(
        self,
        names: Mapping[str, Sequence[Sequence[str]]],
        *,
        routed: Sequence[str] = (PUBLIC, OTHER, SIX),
    ) -> None:
        self.names = {name: list(answers) for name, answers in names.items()}
        self.routed = routed
        self.asked: list[str] = []
        self.dialled: list[tuple[str, int]] = []
        loop: Any = asyncio.get_running_loop()
        self._connect = partial(type(loop).create_connection, loop)
        loop.create_connection = self.connect

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """What a name server says."""
        self.asked.append(host)
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    async def connect(self, factory: Any, host: str, port: int, **given: Any) -> Any:
        """The loop's `create_connection`, for addresses only."""
        assert ipaddress.ip_address(host), "a name was given to the system to resolve it again"
        self.dialled.append((host, port))
        if host not in self.routed:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
        return await self._connect(factory, "127.0.0.1", port, **given)

    def fetch(self, **settings: Any) -> SafeFetch:
        """A guarded fetcher in this internet."""
        return SafeFetch(**{"proxies": Proxies(), "resolve": self.resolve, **settings})
