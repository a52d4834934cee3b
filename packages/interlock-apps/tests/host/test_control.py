"""The control socket: who may open it, which host a command means, and what it does."""

from __future__ import annotations

import asyncio
import socket
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from interlock.models.scripted import call
from interlock_apps.host.control import (
    SUFFIX,
    HostDescription,
    HostRequest,
    HostSocket,
    HostUnreachable,
    ask_host,
    choose_host,
    control_folder,
    find_hosts,
)
from tests.host.scene import YES, Sitting, adder, scene

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no Unix sockets")


def at(folder: str, began: float = 0.0, pid: int = 1) -> HostDescription:
    return HostDescription(pid, folder, "Interlock", [], began)


@pytest.mark.parametrize(
    "hosts, here, chosen",
    [
        ([at("/a")], "/b", "/a"),
        ([at("/a"), at("/b")], "/b", "/b"),
        ([at("/a"), at("/a/b"), at("/c")], "/a/b/c", "/a/b"),
        ([at("/a"), at("/ab")], "/a/b", "/a"),
    ],
)
def test_the_host_of_a_folder(hosts: list[HostDescription], here: str, chosen: str) -> None:
    """The nearest folder above; the only host if there is but one."""
    assert choose_host(hosts, Path(here)).folder == chosen


def test_no_host_or_too_many() -> None:
    """Of two in one folder it is the newer one; elsewhere they are listed."""
    with pytest.raises(HostUnreachable, match="No host is running"):
        choose_host([], Path("/a"))
    with pytest.raises(HostUnreachable, match="--folder:\n  /a .*\n  /b "):
        choose_host([at("/a"), at("/b")], Path("/c"))
    assert choose_host([at("/a", 1, 5), at("/a", 2, 3)], Path("/a")).pid == 3


def test_where_the_sockets_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the runtime folder; without one in the data folder; never with a path that is too long."""
    runtime = tmp_path / "r"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere")
    assert control_folder(Path("/data")) == Path("/data/hosts")
    long = control_folder(Path("/data" * 30))
    assert len(str(long)) < 90
    assert control_folder(Path("/data" * 30)) == long
    assert control_folder(Path("/data" * 31)) != long


async def test_a_run_from_another_program() -> None:
    """It is answered in the host: the question comes to its person, and the list says what waits.
    Files are for the owner only, and a dead socket is removed.
    """
    folder = Path(tempfile.mkdtemp(prefix="interlock-"))  # tmp_path is too long for a socket
    dead = folder / f"999999{SUFFIX}"
    allowed = asyncio.Event()

    async def decide(question: object) -> object:
        await allowed.wait()
        return YES

    answers = (call("adder__add", a=1, b=2), "It is 3.")
    async with scene({"adder": adder()}, *answers, person=Sitting(call=decide)) as it:
        control = HostSocket(it.host, folder, title="Test", address=lambda: "http://new")
        await control.open()
        try:
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            (path,) = folder.iterdir()
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(str(dead))
            (found,) = await asyncio.to_thread(find_hosts, folder)
            assert not dead.exists()
            assert (found.folder, found.title) == (str(Path.cwd()), "Test")

            async def send(**given: str) -> object:
                request = HostRequest(**given)  # type: ignore[arg-type]  # one of its commands
                return await asyncio.to_thread(ask_host, folder, found, request)

            assert (await send(command="address")).address == "http://new"  # type: ignore[attr-defined]  # a response
            session = (await send(command="ask", text="1 + 2?")).session  # type: ignore[attr-defined]  # a response
            await it.person.until("call")
            (run,) = (await send(command="runs")).runs  # type: ignore[attr-defined]  # a response
            assert (run.session, run.state, run.questions) == (session, "waiting", 1)
            assert (run.background, run.title) == (True, "1 + 2?")
            allowed.set()
            await it.until(lambda: it.host.runs()[0].state == "done")
            assert it.host.sessions[session].messages[-1].content[0].text == "It is 3."
            with pytest.raises(HostUnreachable, match="empty"):
                await send(command="ask", text=" ")
            with pytest.raises(HostUnreachable, match="no model"):
                await send(command="ask", text="x", model="other")
        finally:
            await control.aclose()
    assert await asyncio.to_thread(find_hosts, folder) == []
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    other = HostSocket(it.host, folder, title="", address=str)
    with pytest.raises(OSError, match="others may open"):
        await other.open()
    folder.rmdir()
