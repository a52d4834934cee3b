"""Child processes as servers: how they are started, what they inherit, what their end says, and
that they do end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from interlock import types as t
from interlock.transport import child_process
from interlock.transport.stdio import Stdio, inherited_environment
from tests.transport.ends import open_descriptors, turns
from tests.transport.programs import call, hello, server

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="watches processes through /proc, which only Linux has"
)
QUICK = 0.05


@contextlib.asynccontextmanager
async def opened(command: list[str], **options: Any) -> AsyncIterator[Stdio]:
    """A child that has been opened, and that is gone at the end of the block."""
    transport = Stdio(command, **options)
    try:
        async with asyncio.timeout(60):
            await transport.open(hello())
            yield transport
    finally:
        await transport.aclose()


async def words(transport: Stdio, name: str = "x") -> str:
    """Call a tool; its words."""
    result: Any = await transport(call(name))
    return str(result.text)


def alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


async def ended(pid: int) -> None:
    """Wait until a process that need not be a child of ours has ended."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        ready, _, _ = await asyncio.to_thread(select.select, [fd], [], [], 30)
        assert ready, f"process {pid} is still there"
    finally:
        os.close(fd)


# -- starting


async def test_a_child_gets_what_programs_need_and_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is given more on purpose: single variables, or all of them (`STD-17`)."""
    monkeypatch.setenv("HOUSE_SECRET", "1234")
    command = server(tmp_path, during='answer("\\n".join(sorted(os.environ)))')
    async with opened(command) as transport:
        seen = set((await words(transport)).splitlines()) - {
            "LC_CTYPE"
        }  # which Python itself may set
    assert seen <= inherited_environment().keys()
    assert "PATH" in seen
    assert "HOUSE_SECRET" not in seen
    async with opened(command, env={"HOUSE_KEY": "k"}) as transport:
        seen = set((await words(transport)).splitlines())
    assert "HOUSE_KEY" in seen
    assert "HOUSE_SECRET" not in seen
    async with opened(command, inherit_env=True) as transport:
        assert "HOUSE_SECRET" in (await words(transport)).splitlines()


async def test_a_child_runs_where_it_is_told_and_without_a_shell(tmp_path: Path) -> None:
    """Arguments are passed as they are, whatever signs are in them."""
    strange = ["$HOME", "a b", "; rm -rf x", "*", "'\"", ""]
    command = [
        *server(tmp_path, during="answer(json.dumps([os.getcwd(), *sys.argv[1:]]))"),
        *strange,
    ]
    (tmp_path / "elsewhere").mkdir()
    async with opened(command, cwd=tmp_path / "elsewhere") as transport:
        assert eval(await words(transport)) == [str((tmp_path / "elsewhere").resolve()), *strange]


async def test_ctrl_c_is_for_the_parent_alone(tmp_path: Path) -> None:
    """A child has a session of its own, so that a signal from the terminal does not tear it down
    before its client can.
    """
    async with opened(server(tmp_path, during="answer(str(os.getsid(0)))")) as transport:
        assert int(await words(transport)) == transport.pid != os.getsid(0)


NOT_STARTED: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "a command that is not there": (lambda folder: [str(folder / "nothing")], "No such file"),
    "a command that nobody has": (lambda folder: ["interlock-no-such-program"], "No such file"),
    "a file that is no program": (lambda folder: [server(folder)[-1]], "Permission denied"),
    "a folder": (lambda folder: [str(folder)], "Permission denied"),
}


@pytest.mark.parametrize("make, why", NOT_STARTED.values(), ids=NOT_STARTED)
async def test_a_server_that_cannot_be_started_is_unreachable(
    make: Callable[[Path], list[str]], why: str, tmp_path: Path
) -> None:
    """The words name the command and the reason; nothing is left open (`ERR-21`)."""
    command = make(tmp_path)
    before = open_descriptors()
    with pytest.raises(t.Unreachable, match=why) as caught:
        async with opened(command):
            raise AssertionError("it was opened")
    assert command[0] in str(caught.value)
    assert caught.value.exit_code is None
    assert open_descriptors() <= before + 2  # the pool that starts processes may have made its own


async def test_a_server_in_a_folder_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    """(`ERR-21`)"""
    with pytest.raises(t.Unreachable):
        async with opened(server(tmp_path), cwd=tmp_path / "nowhere"):
            raise AssertionError("it was opened")


async def test_no_command_is_a_mistake() -> None:
    """Found before anything is started."""
    with pytest.raises(ValueError, match="command"):
        Stdio([])


async def test_a_start_that_is_given_up_leaves_no_process(tmp_path: Path) -> None:
    """However early it is given up."""
    for delay in range(4):
        transport = Stdio(server(tmp_path), patience=QUICK)
        opening = asyncio.ensure_future(transport.open(hello()))
        await turns(1 + delay * 20)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        pid = transport.pid
        await transport.aclose()
        assert transport.pid is None
        assert pid is None or not alive(pid)


# -- a server that ends

ENDS: dict[str, tuple[dict[str, str], int, str]] = {
    "at once": ({"before": 'sys.exit("no config file")'}, 1, "no config file"),
    "at once and in silence": ({"before": "sys.exit(0)"}, 0, ""),
    "with an exception": ({"before": 'raise KeyError("API_KEY")'}, 1, "KeyError: 'API_KEY'"),
    "by a signal": ({"before": "os.kill(os.getpid(), signal.SIGKILL)"}, -9, ""),
    "when it is spoken to": (
        {"before": 'sys.stdin.readline(); sys.exit("I do not speak this")'},
        1,
        "I do not speak this",
    ),
    "after garbage": ({"before": 'print("Usage: server [options]"); sys.exit(2)'}, 2, ""),
    "in the middle of a line": (
        {"before": "sys.stdout.write('{\"jsonrpc\":'); sys.exit(4)"},
        4,
        "",
    ),
    "after much talk": (
        {"before": 'sys.stderr.write("x" * 100000 + "\\nlast words\\n"); sys.exit(5)'},
        5,
        "last words",
    ),
}


@pytest.mark.parametrize("program, code, last", ENDS.values(), ids=ENDS)
async def test_a_server_that_ends_while_it_is_opened_says_why(
    program: dict[str, str], code: int, last: str, tmp_path: Path
) -> None:
    """Exit code and last words; stderr is kept in bounds (`ERR-21`, `STD-04`)."""
    with pytest.raises(t.Unreachable) as caught:
        async with opened(server(tmp_path, **program)):
            raise AssertionError("it was opened")
    assert caught.value.exit_code == code
    assert last in caught.value.stderr
    assert len(caught.value.stderr) <= 8 * 1024
    assert f"exit code {code}" in str(caught.value)


async def test_a_server_that_ends_in_mid_call_takes_no_call_with_it_in_silence(
    tmp_path: Path,
) -> None:
    """A thousand of them, each with exit code and last words, and no descriptor for each
    (`ERR-21`).
    """
    during = 'if message["params"]["name"] == "last":\n    sys.exit("that was too much")'
    async with opened(server(tmp_path, during=during)) as transport:
        before = open_descriptors()
        calls = [asyncio.ensure_future(words(transport)) for _ in range(1000)]
        calls.append(asyncio.ensure_future(words(transport, "last")))
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        assert open_descriptors() < before + 20
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(outcome) for outcome in outcomes} == {t.Unreachable}
        assert {
            (bad.exit_code, bad.stderr.strip())
            for bad in outcomes
            if isinstance(bad, t.Unreachable)
        } == {(1, "that was too much")}


async def test_a_server_that_closes_its_output_and_stays_is_unreachable_too(tmp_path: Path) -> None:
    """It has no exit code yet, so none is told (`STD-08`)."""
    during = "os.close(1)"
    async with opened(server(tmp_path, during=during), patience=QUICK) as transport:
        with pytest.raises(t.Unreachable) as caught:
            await words(transport)
        assert caught.value.exit_code is None


async def test_stderr_is_heard_line_by_line_and_is_no_failure(tmp_path: Path) -> None:
    """Bytes of no encoding and a last line without its end too; it never reaches the wire
    (`STD-04`, `STD-05`).
    """
    before = 'os.write(2, b"one\\r\\ntwo \\xff\\n\\nthr"); os.write(2, b"ee\\n")'
    received: list[str] = []
    async with opened(
        server(tmp_path, before=before, after='os.write(2, b"the end")'), on_stderr=received.append
    ) as transport:
        assert await words(transport) == "fine"
    assert received == ["one", "two \ufffd", "", "three", "the end"]


async def test_what_is_left_in_stderr_is_read_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the client got no turn between the last words of the server and its end."""
    real_end = child_process._end

    async def descheduled(process: subprocess.Popen[bytes], patience: float) -> None:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - on purpose
        await real_end(process, patience)

    monkeypatch.setattr(child_process, "_end", descheduled)
    received: list[str] = []
    async with opened(
        server(tmp_path, after='os.write(2, b"last words\\n")'), on_stderr=received.append
    ):
        pass
    assert received == ["last words"]


async def test_a_server_that_floods_stderr_is_not_held_up_by_it(tmp_path: Path) -> None:
    """Somebody always reads it (`STD-04`)."""
    during = 'os.write(2, b"y" * 1000000); answer("fine")'
    async with opened(server(tmp_path, during=during)) as transport:
        for _ in range(5):
            assert await words(transport) == "fine"


# -- closing

STUBBORN = (
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)"
)
STAYS = "while True: time.sleep(3600)"
CLOSINGS: dict[str, dict[str, str]] = {
    "one that ends with its input": {},
    "one that must be told": {"after": STAYS},
    "one that ignores being told": {"before": STUBBORN, "after": STAYS},
    "one that is stopped": {
        "before": STUBBORN,
        "during": "answer(''); os.kill(os.getpid(), signal.SIGSTOP)",
    },
    "one that says farewell at length": {
        "after": "sys.stdout.write('bye ' * 1000000); sys.stdout.flush()"
    },
}


@pytest.mark.parametrize("program", CLOSINGS.values(), ids=CLOSINGS)
async def test_a_child_is_gone_when_the_client_closes(
    program: dict[str, str], tmp_path: Path
) -> None:
    """Its input is closed, then it is asked, then it is made to; nothing is left open, and closing
    twice is no fault (`STD-07`).
    """
    before = open_descriptors()
    async with opened(server(tmp_path, **program), patience=QUICK) as transport:
        pid = transport.pid
        assert pid is not None
        await words(transport)
        assert alive(pid)
    await transport.aclose()
    assert not alive(pid)
    assert transport.pid is None
    assert open_descriptors() <= before + 2
    assert str(pid) not in os.listdir("/proc")  # not even as a zombie


async def test_a_child_has_time_to_end_in_good_order(tmp_path: Path) -> None:
    """It is not told to go while it is still tidying up (`STD-07`, `STD-09`)."""
    note = tmp_path / "note"
    async with opened(
        server(tmp_path, after=f'time.sleep(0.2); open({str(note)!r}, "w").write("tidy")'),
        patience=20,
    ):
        pass
    assert note.read_text() == "tidy"


async def test_a_child_that_is_told_may_still_tidy_up(tmp_path: Path) -> None:
    """SIGTERM comes before SIGKILL (`STD-07`)."""
    note = tmp_path / "note"
    before = (
        f'def leave(*_):\n    open({str(note)!r}, "w").write("told")\n    os._exit(0)\n'
        "signal.signal(signal.SIGTERM, leave)"
    )
    async with opened(server(tmp_path, before=before, after=STAYS), patience=0.3):
        pass
    assert note.read_text() == "told"


@pytest.mark.parametrize("ending", ["with its input", "by force", "by itself"])
async def test_what_a_child_has_started_goes_with_it(ending: str, tmp_path: Path) -> None:
    """Its own children, also those that ignore signals, however the child ended (`STD-07`)."""
    grandchild = (
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(3600)"
    )
    before = f"child = subprocess.Popen([sys.executable, '-S', '-c', {grandchild!r}])"
    after = STAYS if ending == "by force" else ""
    during = "answer(str(child.pid)) if message['params']['name'] == 'pid' else os._exit(3)"
    async with opened(
        server(tmp_path, before=before, during=during, after=after), patience=QUICK
    ) as transport:
        pid = int(await words(transport, "pid"))
        assert alive(pid)
        if ending == "by itself":
            with pytest.raises(t.Unreachable):
                await words(transport, "end")
    await ended(pid)


async def test_a_grandchild_that_holds_the_pipes_does_not_hold_the_client(tmp_path: Path) -> None:
    """The wire's other end stays open in it though the server has ended; closing does not wait for
    that.
    """
    grandchild = "import time; time.sleep(3600)"
    before = f"child = subprocess.Popen([sys.executable, '-S', '-c', {grandchild!r}])"
    during = "answer(str(child.pid)) if message['params']['name'] == 'pid' else os._exit(3)"
    async with opened(server(tmp_path, before=before, during=during), patience=QUICK) as transport:
        pid = int(await words(transport, "pid"))
        doomed = asyncio.ensure_future(words(transport, "end"))
        while transport.pid is not None and alive(transport.pid):
            await turns(1)
    outcome = (await asyncio.gather(doomed, return_exceptions=True))[0]
    assert isinstance(outcome, t.Unreachable)
    await ended(pid)


async def test_calls_before_opening_and_after_closing_are_unreachable(tmp_path: Path) -> None:
    """(`ERR-21`)"""
    transport = Stdio(server(tmp_path))
    with pytest.raises(t.Unreachable):
        await transport(call())
    await transport.aclose()
    async with opened(server(tmp_path)) as other:
        assert await words(other) == "fine"
    with pytest.raises(t.Unreachable):
        await other(call())
    other.send_notification(
        "notifications/roots/list_changed", t.RootsListChangedNotificationParams()
    )
