"""Programs that use a vault in a process of their own; the first argument is the vault's URL."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process

OPENING = """
import asyncio, json, os, sys, time
from interlock.store import hold_lease, open_vault
vault = open_vault(sys.argv[1])
"""

# Adds, counts by swapping, and takes what others want too; says what it was told it had.
BUSY = (
    OPENING
    + """
async def main(me, rounds):
    added, taken = [], []
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(rounds):
        await vault.add("own", f"{me} {n}", b"x")
        if await vault.add("wanted", str(n), me.encode()):
            added.append(n)
        while True:
            was = await vault.get("count", "")
            if await vault.swap("count", "", was, b"%d" % (int(was) + 1)):
                break
        if (ticket := await vault.pop("ticket", str(n))) is not None:
            taken.append(ticket.decode())
    print(json.dumps([added, taken]), flush=True)

asyncio.run(main(sys.argv[2], int(sys.argv[3])))
"""
)

# Writes as fast as it can: pairs of which both halves are always the same, and says how far it has
# come.
WRITER = (
    OPENING
    + """
async def main():
    number = int(await vault.get("n", "number") or b"0")
    while True:
        number += 1
        await vault.put("n", "number", b"%d" % number)
        await vault.put("n", "long", b"%d " % number * 5000)
        print(number, flush=True)

asyncio.run(main())
"""
)

# Goes in and out, and complains where somebody else is inside.
VISITOR = (
    OPENING
    + """
async def main(mark, rounds):
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(rounds):
        async with hold_lease(vault, "https://server.example"):
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
            await asyncio.sleep(0.001)
            os.unlink(mark)
    print("done", flush=True)

asyncio.run(main(sys.argv[2], int(sys.argv[3])))
"""
)

# Goes in and stays there.
HOLDER = (
    OPENING
    + """
async def main():
    async with hold_lease(vault, "https://server.example"):
        print("inside", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
)

# Uses a vault, forks, and uses it on both sides.
FORK = (
    OPENING
    + """
async def use(who):
    for n in range(10):
        assert await vault.add("k", f"{who} {n}", b"x")

asyncio.run(use("before"))
child = os.fork()
asyncio.run(use("parent" if child else "child"))
if child:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(asyncio.run(vault.keys("k"))) == 30
"""
)

# Forks, again and again, while another thread is busy with the vault; each child uses it, too.
FORK_BUSY = (
    OPENING
    + """
import threading, warnings
# Newer Pythons warn of forks among threads, which is what this is about.
warnings.simplefilter("ignore")
begun, over = threading.Event(), threading.Event()
async def busy():
    count = 0
    while not over.is_set():
        await vault.put("busy", str(count % 10), b"x" * 5000)
        # What has to be imported is: a child would wait for ever for an import that its parent's
        # thread was at.
        begun.set()
        count += 1
async def use(who):
    for n in range(3):
        async with asyncio.timeout(10):
            assert await vault.add("k", f"{who} {n}", b"x")

thread = threading.Thread(target=lambda: asyncio.run(busy()))
thread.start()
begun.wait()
for turn in range(8):
    if not (child := os.fork()):
        try:
            asyncio.run(use(turn))
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, turn
over.set()
thread.join()
assert len(asyncio.run(vault.keys("k"))) == 24
"""
)


def environment(**more: str) -> dict[str, str]:
    """Variables for a program that must not meet the keyring, or the vault, of whoever runs the
    tests.
    """
    own = {
        name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_VAULT")
    }
    return {
        **own,
        "PYTHONUNBUFFERED": "1",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        **more,
    }


async def start(program: str, *arguments: str, **variables: str) -> Process:
    """A Python process, with a group of its own, that runs a program.

    What it is told and what it prints goes through pipes.
    """
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        *arguments,
        stdin=PIPE,
        stdout=PIPE,
        env=environment(**variables),
        start_new_session=True,
    )


async def end(process: Process) -> None:
    """Kill what is left of a process and of its children, where it has not ended by itself."""
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
