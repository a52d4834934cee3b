"""The snippets of the README and the guide work: the tests write every file that they show, and run
every command."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.docs.pages import TOP, Block, Command, agrees, blocks, commands, pages
from tests.ports import free_port
from tests.servers.database.cluster import running as postgresql

PAGES = {page.relative_to(TOP).as_posix(): page.read_text(encoding="utf-8") for page in pages()}
# A page of a server starts that server once for each command, and the quickstarts differ in names
# only: `make test` runs a sample of them.
LONG = pytest.mark.endurance(seconds=5)
MANY = ("docs/servers/", "docs/quickstart/")
NEEDS_DATABASE = "docs/cookbook/database.md"  # its programs find PostgreSQL by DATABASE_URL


def marks(name: str) -> list[pytest.MarkDecorator]:
    """The marks of a page."""
    if name == NEEDS_DATABASE:
        return [pytest.mark.database]
    return [LONG] if name.startswith(MANY) else []


WITH_CODE = [
    pytest.param(name, marks=marks(name)) for name, text in PAGES.items() if "```python" in text
]

SET = re.compile(r"[A-Z_]+=.*")  # a variable for one command
# Commands that the tests do not run, because they would install packages or never end.
NOT_RUN = ("make ", "git clone ", "pip install ")
KEYS = {"OLD": "11" * 32, "NEW": "22" * 32}  # the keys that pages name so
CALL = "4711-12"  # the ID of a call on a page; the part before the hyphen is a process


@pytest.mark.parametrize("name", WITH_CODE)
def test_what_a_page_shows_works(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the page, files are written and commands run, and their output matches the
    page."""
    ran: list[str] = []
    files: dict[str, str] = {}
    text = re.sub(
        r"(?<=[:=])8000\b", str(free_port()), PAGES[name]
    )  # the port of the page, which may be in use here
    jobs: list[subprocess.Popen[str]] = []
    call = CALL  # what the server prints in its place
    with contextlib.ExitStack() as page:
        if name == NEEDS_DATABASE:
            monkeypatch.setenv("DATABASE_URL", page.enter_context(postgresql()).url)
        for block in blocks(text, name):
            if block.language in ("python", "html"):
                assert block.title, (
                    f"{block.where}: a snippet opens with a comment that names its file"
                )
                files[block.title] = block.text
                (tmp_path / block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "toml" and block.title:
                files[block.title] = block.text
                (tmp_path / block.title).write_text(block.text, encoding="utf-8")
            elif block.language == "console":
                for shown in commands(block):
                    command = with_call(shown, call)
                    if command.line.startswith(NOT_RUN):
                        continue
                    ran.append(command.line)
                    if command.line.endswith(" &"):
                        jobs.append(page.enter_context(running(command, tmp_path)))
                    elif command.line.startswith("wait %"):
                        wait(jobs[int(command.line.removeprefix("wait %")) - 1], command)
                    else:
                        call = check(command, tmp_path) or call
            elif block.language == "json":
                msgspec.json.decode(block.text)
    left = [title for title in files if not used(title, files, ran)]
    assert not left, f"{name}: nothing runs {', '.join(left)}"


def with_call(command: Command, call: str) -> Command:
    """A command with the ID of a call and the process of a call that the server printed."""
    for sample, value in ((CALL, call), (CALL.partition("-")[0], call.partition("-")[0])):
        line = command.line.replace(sample, value)
        command = Command(line, command.output.replace(sample, value), command.where)
    return command


def check(command: Command, folder: Path) -> str:
    """Run a command in a folder, and compare what it prints. Returns the ID of a call if it prints
    one in place of that on the page.

    A nonzero exit code is in brackets at the end.
    """
    with started(command, folder) as done:
        try:
            output, errors = done.communicate(timeout=300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(
                    done.pid, signal.SIGKILL
                )  # the processes of a program that hangs or fails
    output += f"[exit code {done.returncode}]" if done.returncode else ""
    assert agrees(command.output.replace(CALL, "..."), output), (
        f"{command.where}: {command.line}\n--- wanted\n{command.output}\n--- got\n{output}\n"
        f"{errors}"
    )
    found = re.search(r"\b\d+-\d+\b", output) if CALL in command.output else None
    return found[0] if found is not None else ""


def started(command: Command, folder: Path) -> subprocess.Popen[str]:
    """Start a command in a folder, like a reader."""
    typed = shlex.split(command.line.removesuffix(" &"))
    words = list(itertools.dropwhile(SET.fullmatch, typed))
    told = dict(word.split("=", 1) for word in typed[: -len(words)])
    told = {
        name: ",".join(KEYS.get(part, part) for part in value.split(","))
        for name, value in told.items()
    }
    python = {
        "python": [],
        "interlock": ["-m", "interlock"],
        "pytest": ["-m", "pytest", "-p", "no:cacheprovider"],
    }
    assert words[0] in python, f"{command.where}: there is no running {words[0]}"
    home = folder / ".home"
    home.mkdir(exist_ok=True)
    words = [str(home / word[2:]) if word.startswith("~/") else word for word in words]
    path = os.pathsep.join(
        [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    )  # the folder into which `make install` installs the command
    environment = {
        **os.environ,
        "PATH": path,
        "PYTHONPATH": str(folder),
        "HOME": str(home),  # the hosts and logins of the user who runs the tests stay as they are
        "COLUMNS": "100",
        "NO_COLOR": "1",
        **told,
    }
    return subprocess.Popen(
        [sys.executable, *python[words[0]], *words[1:]],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )


@contextlib.contextmanager
def running(command: Command, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A command with `&` at its end: it prints the output of the page, runs until the end of the
    page or until the page waits for it, and exits without an error."""
    with started(command, folder) as process:
        try:
            assert process.stderr is not None
            said = "".join(process.stderr.readline() for _ in command.output.splitlines())
            assert agrees(command.output, said), (
                f"{command.where}: {command.line}\n--- wanted\n{command.output}\n--- got\n{said}"
            )
            yield process
            process.terminate()
            assert process.wait(60) == 0, process.stderr.read()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def wait(job: subprocess.Popen[str], command: Command) -> None:
    """Wait until a command in the background has ended, and compare what it printed last."""
    assert job.stderr is not None
    assert job.wait(60) == 0
    said = job.stderr.read()
    assert agrees(command.output, said), f"{command.where}: {said}"


def used(title: str, files: dict[str, str], ran: list[str]) -> bool:
    """Whether a file was run, or is named by a file that may have been run."""
    stem = title.removesuffix(".py")
    if any(
        title in line or (stem.startswith("test_") and line.startswith("pytest")) for line in ran
    ):
        return True
    return any(
        re.search(rf"\b(?:from|import) {stem}\b|{title}", text)
        for other, text in files.items()
        if other != title
    )


@pytest.mark.parametrize("name", PAGES)
def test_commands_for_make_exist(name: str) -> None:
    """The targets of make, which this test does not run, exist."""
    targets = set(
        re.findall(r"^([a-z]+):", (TOP / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    for block in blocks(PAGES[name], name):
        if block.language == "console":
            for command in commands(block):
                if command.line.startswith("make "):
                    assert set(re.findall(r"[a-z]+", command.line)) - {"make"} <= targets, (
                        command.where
                    )


def test_snippets_are_well_kept(tmp_path: Path) -> None:
    """The project's linter and formatter report no errors for the snippets."""
    for name, text in PAGES.items():
        for block in blocks(text, name):
            if block.title:
                path = tmp_path / name / block.title
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block.text, encoding="utf-8")
    config = ["--config", str(TOP / "pyproject.toml"), "--no-cache", str(tmp_path)]
    for command in (["check", "--output-format", "concise"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, *config],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_has_its_ten_lines() -> None:
    """Ten lines for a server, ten for a client, and the two commands."""
    found = {block.title: block for block in blocks(PAGES["README.md"], "README.md") if block.title}
    for title in ("server.py", "client.py"):
        lines = [line for line in found[title].text.splitlines()[1:] if line.strip()]
        assert len(lines) <= 10, title
    assert "$ make demo" in PAGES["README.md"]
    assert "$ make test" in PAGES["README.md"]


def test_a_wrong_page_is_noticed(tmp_path: Path) -> None:
    """The comparison detects different output, a failing program, a snippet without a name, and a
    file that no command runs."""
    block = Block("console", "$ python hello.py\nhello\n", None, "here")
    (command,) = commands(block)
    (tmp_path / "hello.py").write_text("print('good-bye')", encoding="utf-8")
    with pytest.raises(AssertionError, match="good-bye"):
        check(command, tmp_path)
    (tmp_path / "hello.py").write_text("print('hello'); raise SystemExit(3)", encoding="utf-8")
    with pytest.raises(AssertionError, match="exit code 3"):
        check(command, tmp_path)
    assert not used("a.py", {"a.py": "", "b.py": "import ab"}, ["python b.py"])
    assert used("a.py", {"a.py": "", "b.py": "from a import x"}, ["python b.py"])
    assert agrees("one ... three", "one and two and three")
    assert not agrees("one ... three", "one and two and three and four")
