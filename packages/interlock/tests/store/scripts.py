"""Programs that use a store in a process of their own."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process

OPENING = """
import asyncio, os, sys, time
from interlock.store import RedisStore, open_store
from interlock.testing.contracts.sessions import session

def place(argument):
    url, _, prefix = argument.partition(" ")
    return RedisStore(url, prefix=prefix) if prefix else open_store(url)
"""

# Answers every "ping" that it hears with a "pong", until it hears "over".
ECHO = (
    OPENING
    + """
async def main():
    store, over = place(sys.argv[1]), asyncio.Event()
    def hear(note, position):
        if note.startswith(b"ping"):
            store.notes.publish(b"pong" + note[4:])
        elif note == b"over":
            over.set()
    await store.open()
    store.notes.subscribe(hear)
    print("ready", flush=True)
    await over.wait()
    await store.aclose()

asyncio.run(main())
"""
)

# Writes as fast as it can, and says now and then how far it has come.
BUSY = (
    OPENING
    + """
async def main():
    store = place(sys.argv[1])
    await store.open()
    await store.sessions.create(session("s"), most=9, now=time.time())
    number = 0
    while True:
        for _ in range(100):
            store.events.append("s", "t", number, b"%d" % number * 50, last=False)
            store.changes.publish(b"%d" % number)
            number += 1
        await store.events.read("s", "t", number)
        print(number, flush=True)

asyncio.run(main())
"""
)

# Opens and closes a store, forks, and uses it in the child.
FORK = (
    OPENING
    + """
store = place(sys.argv[1])

async def visit():
    await store.open()
    await store.aclose()

async def use():
    await store.open()
    heard = asyncio.get_running_loop().create_future()
    store.changes.subscribe(lambda note, position: heard.set_result(note))
    assert await store.sessions.create(session("s"), most=9, now=time.time())
    store.changes.publish(b"note")
    assert await heard == b"note"
    await store.aclose()

asyncio.run(visit())
child = os.fork()
asyncio.run(use() if child == 0 else visit())
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
)


async def start(program: str, *arguments: str) -> Process:
    """A Python process that runs a program; what it prints comes through a pipe."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, *arguments, stdout=PIPE, env=environment
    )
