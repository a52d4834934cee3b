"""Fork server: a forked program does what a newly started one does, and what cannot be forked is
started."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import forked_programs
from tests.fork_client import ForkClient, forking, parsed
from tests.forked_programs import fork_server

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the fork server needs Linux")

SURROUNDINGS = """
import os, signal, sys, threading

print(__name__, __package__, __spec__, os.path.basename(__file__), sys.argv, sys.orig_argv)
print(sys.path, os.getcwd(), os.umask(0o22), threading.current_thread() is threading.main_thread())
print(sorted(os.listdir("/proc/self/fd")), os.environ["GIVEN"], os.environ.get("HOME"))
print(open("/proc/self/cmdline").read().rstrip(chr(0)).split(chr(0)))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
    print(signal.getsignal(number))
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering)
print(os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid())
print(os.getppid())
print(sys.stdin.read())
"""
LEFTOVER = """
import atexit, sys, threading, time

class Left:
    def __del__(self):
        print("collected")

left = Left()
atexit.register(lambda: print("at exit"))
threading.Timer(0.05, lambda: print("a thread")).start()
sys.stdout.write("no end of line")
"""
ENDINGS = {
    "surroundings": SURROUNDINGS,
    "leftover": LEFTOVER,
    "returns": "",
    "a status": "raise SystemExit(7)",
    "a large status": "raise SystemExit(300)",
    "a message": "raise SystemExit('a message')",
    "an error": "def fails():\n    1 / 0\n\nfails()",
    "no program": "this is no Python",
    "closes its streams": "import sys\nsys.stdout.close()",
    "at once": "import os\nos._exit(3)",
}

Popen = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkClient]:
    """A fork server of its own, as these tests may run without `--fork`."""
    with fork_server() as client:
        yield client


def outcome(command: list[str], **options: Any) -> tuple[int, str, str]:
    """What a command prints, and its exit status."""
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, **options)
    return ran.returncode, ran.stdout, ran.stderr


def ends(process: int) -> bool:
    """Wait until a process that is not ours has ended."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], 60)[0])
    finally:
        os.close(descriptor)


@pytest.mark.cold
@pytest.mark.parametrize("name", ENDINGS)
def test_a_program_does_the_same(server: ForkClient, name: str, tmp_path: Path) -> None:
    """It has the same surroundings, prints the same, and ends in the same way."""
    (tmp_path / "program.py").write_text(ENDINGS[name], encoding="utf-8")
    command = [sys.executable, "program.py", "a word", "--option"]
    options: dict[str, Any] = {
        "cwd": tmp_path,
        "env": {**os.environ, "GIVEN": "ä", "HOME": str(tmp_path)},
        "input": "from the test",
        "start_new_session": True,
    }
    wanted = outcome(command, **options)
    with forking(server) as forked:
        assert outcome(command, **options) == wanted
    assert forked == [command]


SAID = "import sys; print(__name__, __package__, sys.argv, sys.path[:2])"


@pytest.mark.cold
@pytest.mark.parametrize(
    "words",
    [
        ("-m", "inner.program"),
        ("-P", "-m", "inner.program"),
        ("-c", SAID),
        ("-P", "-c", SAID),
        pytest.param(
            ("-c", "def fails():\n    1 / 0\n\nfails()"),
            marks=pytest.mark.skipif(
                sys.version_info >= (3, 13),
                reason="an interpreter of 3.13 shows lines of -c, which only its start keeps",
            ),
        ),
        ("-c", "this is no Python"),
    ],
)
def test_a_module_or_code_does_the_same(
    server: ForkClient, words: tuple[str, ...], tmp_path: Path
) -> None:
    """The folder of the program is on the import path, unless the command forbids it."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "program.py").write_text(SAID, encoding="utf-8")
    command = [sys.executable, *words, "a word"]
    wanted = outcome(command, cwd=tmp_path)
    with forking(server) as forked:
        assert outcome(command, cwd=tmp_path) == wanted
    assert forked == [command]


def test_a_program_is_a_child_of_the_test(server: ForkClient, tmp_path: Path) -> None:
    """It gets signals, and its end is known; an unbuffered program prints at once."""
    (tmp_path / "sleeps.py").write_text(
        "import time\nprint('ready')\ntime.sleep(60)", encoding="utf-8"
    )
    command = [sys.executable, "-u", str(tmp_path / "sleeps.py")]
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        with forking(server), subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as program:  # fmt: skip
            assert program.stdout is not None
            assert program.stdout.readline() == b"ready\n"
            program.send_signal(number)
            assert program.wait(60) == -number


def test_programs_of_a_program_are_forked_too(server: ForkClient, tmp_path: Path) -> None:
    """They are its children, and its server ends with it."""
    (tmp_path / "inner.py").write_text(
        "import os, sys\nprint(os.getppid(), 'asyncio' in sys.modules)", encoding="utf-8"
    )
    (tmp_path / "outer.py").write_text(
        "import os, subprocess, sys\n"
        "command = [sys.executable, 'inner.py']\n"
        "print(os.getpid(), flush=True)\n"
        "print(subprocess.run(command, capture_output=True, text=True).stdout, end='')\n"
        "print(open(f'/proc/self/task/{os.getpid()}/children').read())\n",
        encoding="utf-8",
    )
    for nests in (True, False):
        server.nests = nests
        with forking(server):
            status, output, errors = outcome([sys.executable, "outer.py"], cwd=tmp_path)
        assert (status, errors) == (0, "")
        outer, parent, forked, *children = output.split()
        assert parent == outer
        assert forked == str(nests)
        assert len(children) == nests
        assert all(ends(int(child)) for child in children)
    server.nests = True


def test_descriptors_are_passed_on(server: ForkClient, tmp_path: Path) -> None:
    """The program finds a descriptor under the number that the test knows."""
    (tmp_path / "writes.py").write_text(
        "import os, sys\nos.write(int(sys.argv[1]), b'written')", encoding="utf-8"
    )
    read, write = os.pipe()
    command = [sys.executable, str(tmp_path / "writes.py"), str(write)]
    with forking(server) as forked:
        subprocess.run(command, pass_fds=[write], check=True)
    os.close(write)
    assert os.read(read, 100) == b"written"
    os.close(read)
    assert forked == [command]


def test_what_the_start_of_an_interpreter_decides_is_started(
    server: ForkClient, tmp_path: Path
) -> None:
    """Options and variables of the interpreter, a module that hides another, another program."""
    program = tmp_path / "program.py"
    program.write_text("print('ran')", encoding="utf-8")
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    (hiding / "json.py").touch()
    (hiding / "program.py").write_text("print('ran')", encoding="utf-8")
    with forking(server) as forked:
        asks = "import sys; sys.modules; print('ran')"
        assert outcome([sys.executable, "-c", asks])[1] == "ran\n"
        assert outcome([sys.executable, "-I", str(program)])[1] == "ran\n"
        assert outcome([sys.executable, str(hiding / "program.py")])[1] == "ran\n"
        for name, value in (
            ("PYTHONPATH", str(hiding)),
            ("PYTHONWARNINGS", "error"),
            ("LC_ALL", "de_DE.ISO-8859-1"),
        ):
            env = {**os.environ, name: value}
            assert outcome([sys.executable, str(program)], env=env)[1] == "ran\n"
        assert outcome(["/bin/echo", "ran"])[1] == "ran\n"
        with pytest.raises(FileNotFoundError):
            subprocess.run([sys.executable, str(program)], cwd=tmp_path / "none", check=False)
    assert forked == []


def test_a_thread_that_restricts_itself_starts_a_program_below_its_restrictions(
    server: ForkClient,
) -> None:
    """Else a program in a sandbox would be outside of it."""
    command = [sys.executable, "-c", "print(open('/proc/self/status').read())"]
    printed: list[str] = []

    def restricted() -> None:
        ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        printed.append(outcome(command)[1])

    with forking(server) as forked:
        thread = threading.Thread(target=restricted)
        thread.start()
        thread.join()
    assert forked == []
    assert "NoNewPrivs:\t1\n" in printed[0]


def test_a_thread_that_blocks_a_signal_starts_a_program_that_blocks_it(server: ForkClient) -> None:
    command = [sys.executable, "-c", "import signal; print(signal.pthread_sigmask(0, ()))"]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    try:
        with forking(server) as forked:
            assert "SIGUSR1" in outcome(command)[1]
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    assert forked == []


def test_an_interrupted_request_mixes_up_no_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its answer, which nobody has read, is not taken for that of the next one."""
    program = tmp_path / "program.py"
    program.write_text("print('ran')", encoding="utf-8")
    command = [sys.executable, str(program)]

    def interrupted(channel: socket.socket) -> Any:
        raise KeyboardInterrupt

    with fork_server() as client, forking(client) as forked:
        with monkeypatch.context() as patched:
            patched.setattr("tests.fork_client.receive", interrupted)
            with pytest.raises(KeyboardInterrupt):
                outcome(command)
        assert outcome(command)[:2] == (0, "ran\n")
    assert forked == []


@pytest.mark.parametrize(
    "words, expected",
    [
        (["a.py", "-c"], (set(), "", "", ["a.py", "-c"])),
        (["-P", "-m", "interlock", "-m"], ({"P"}, "interlock", "", ["-m", "-m"])),
        (["-u", "-P", "a.py"], ({"u", "P"}, "", "", ["a.py"])),
        (["-c", "pass", "-m"], (set(), "", "pass", ["-c", "-m"])),
        (["-c", "import sys; print(sys.modules)"], None),
        (["-m", "pytest"], None),
        (["-m"], None),
        (["-Pm", "interlock"], None),
        ([], None),
    ],
)
def test_commands_are_parsed(words: list[str], expected: object) -> None:
    assert parsed([sys.executable, *words]) == expected
    assert parsed(["python", *words]) is None


def test_a_test_can_ask_for_real_interpreters(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker `cold` is enough; without the option every program is started."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nmarkers =\n  cold")
    pytester.makepyfile(
        """
        import subprocess, sys
        import pytest

        def is_forked(tmp_path):
            program = tmp_path / "program.py"
            program.write_text("import sys; print('asyncio' in sys.modules)")
            return subprocess.check_output([sys.executable, program], text=True) == "True\\n"

        @pytest.mark.cold
        def test_first(tmp_path): assert not is_forked(tmp_path)

        def test_second(tmp_path, request):
            assert is_forked(tmp_path) == request.config.option.fork

        @pytest.mark.cold
        def test_third(tmp_path): assert not is_forked(tmp_path)
        """
    )
    for options in (["--fork"], []):
        ran = pytester.runpytest_subprocess("-p", forked_programs.__name__, *options)
        ran.assert_outcomes(passed=3)
