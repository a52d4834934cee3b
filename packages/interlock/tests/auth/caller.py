"""A program that logs in and calls: `caller.py URL VAULT CALLS AT_ONCE LEASE`.

It says `ready`, waits for a line, calls, and says how it went. The lease, in seconds, counts from
that line on.
"""

from __future__ import annotations

import asyncio
import json
import sys

from interlock import Client, ClientSettings
from interlock.auth import OAuth
from interlock.auth import client as authorization
from tests.auth.robot import Robot


async def main(url, vault, calls, at_once, lease):
    auth = OAuth(vault=vault, agent=Robot)
    failed = []
    async with Client(
        url, auth=auth, settings=ClientSettings(cache=False), timeout=120.0
    ) as client:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        authorization._LEASE = float(lease)
        left = iter(range(int(calls)))

        async def caller():
            for _ in left:
                try:
                    await client.call_tool("who")
                except Exception as bad:
                    failed.append(repr(bad))

        await asyncio.gather(*(caller() for _ in range(int(at_once))))
    await auth.aclose()
    print(json.dumps(failed), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
