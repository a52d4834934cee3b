"""A project of `interlock new` in an empty environment: it installs, tests, runs and builds by the
words of its README.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.peers import LOCKED, installer
from tests.cli.conftest import Command
from tests.ports import free_port
from tests.shipping.dockerfiles import parse

ROOT = Path(__file__).resolve().parents[4]
# What the project needs besides ours, with all that these need: its backend, its tests, its extras
# of ours.
NEEDED = ("flit-core", "pytest", "pytest-asyncio", "interlock[http]")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the README's words are a shell's")


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with the wheel of this very source, made by its build backend."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    build = "import sys; from flit_core.buildapi import build_wheel; build_wheel(sys.argv[1])"
    _run([sys.executable, "-c", build, str(folder)], ROOT)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with the packages of the lock that the project needs, and without ours."""
    place = tmp_path / "venv"
    _run([sys.executable, "-m", "venv", "--without-pip", str(place)], tmp_path)
    lock = tmp_path / "needed.txt"
    lock.write_text("\n".join(_locked(_closure(NEEDED))), encoding="utf-8")
    _run([*installer(place / "bin" / "python"), *LOCKED, "-r", str(lock)], tmp_path)
    return place


@pytest.mark.endurance(seconds=15)
@pytest.mark.parametrize("options", [(), ("--app", "--http", "--skill")], ids=["plain", "all"])
def test_every_command_of_the_readme_works(
    interlock: Command, home: Path, wheels: Path, environment: Path, options: tuple[str, ...]
) -> None:
    """Installed without an index from our wheel, tested, listed, called, served, and built into a
    wheel of its own.

    The page of its app and its skill are in that wheel too. The command of a project for HTTP
    starts with the variables of its Dockerfile, until the health check there succeeds.
    """
    assert interlock("new", "hello-world", *options).exit_code == 0
    folder = home / "hello-world"
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "PYTHON", "VIRTUAL"))
    }
    env["PATH"] = f"{environment / 'bin'}{os.pathsep}{env['PATH']}"
    pip = installer(environment / "bin" / "python")[:-1]
    offline = ["--no-index", "--find-links", str(wheels), "--no-build-isolation"]

    commands = list(_commands(folder / "README.md"))
    assert commands[:2] == ["python -m venv .venv", ". .venv/bin/activate"]
    done = []
    for command in commands[2:]:
        if command.startswith("pip "):  # of the environment that is there, and without an index
            words = [word.strip('"') for word in command.split()[1:]]
            done.append(_run([*pip, *words, *offline], folder, env))
        elif "--http" in command:
            _serve_over_http(command, folder, env)
        elif command == "hello-world" and options:
            _start_as_in_its_image(folder, env)
        else:
            done.append(_run(["sh", "-c", command], folder, env))
    said = "".join(done)
    assert f"{2 + len(options)} passed" in said
    assert "Hello, Ada!" in said
    assert "greet (name: string, loud?: boolean)" in said
    assert "+++" in said  # what --dry-run shows

    (built,) = (folder / "dist").glob("*.whl")
    assert built.name == "hello_world-0.1.0-py3-none-any.whl"
    _run([*pip, "uninstall", "--yes", "hello-world"], folder, env)
    _run([*pip, "install", "--no-deps", "--no-index", str(built)], folder, env)
    over_stdio = "from hello_world.server import server; server.run()"
    program = ["--", "python", "-c", over_stdio] if options else ["--", "hello-world"]
    told = _run(["interlock", "call", "greet", "name=Ada", *program], home, env)
    assert told == "Hello, Ada!\n"
    if options:
        page = _run(["interlock", "read", "ui://hello-world/greeting", *program], home, env)
        assert page.startswith("<!doctype html>")
        skill = _run(["interlock", "read", "skill://greeting/SKILL.md", *program], home, env)
        assert skill.startswith("---\nname: greeting\n")


def _commands(readme: Path) -> Iterator[str]:
    """The lines of the code blocks."""
    for line in readme.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            yield line.strip()


def _serve_over_http(command: str, folder: Path, env: dict[str, str]) -> None:
    """Serve at any free port instead of the README's, ask the server there, and end it."""
    words = command.replace(":8000", ":0").split()
    with subprocess.Popen(words, cwd=folder, env=env, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = process.stderr.readline().removeprefix("Serving at ").strip()
            assert "Hello, Ada!" in _run(
                ["interlock", "call", address, "greet", "name=Ada"], folder, env
            )
        finally:
            process.terminate()


def _start_as_in_its_image(folder: Path, env: dict[str, str]) -> None:
    """Run the entry point of the Dockerfile with its variables, but on a free port of the loopback
    address, until its health check succeeds."""
    (stage,) = parse((folder / "Dockerfile").read_text(encoding="utf-8"))[-1:]
    entry, probe = stage.last("ENTRYPOINT"), stage.last("HEALTHCHECK")
    assert entry is not None
    assert probe is not None
    env = env | {"HOST": "127.0.0.1", "PORT": str(free_port())}
    with subprocess.Popen(
        entry.command() or [], cwd=folder, env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            while subprocess.run(probe.command() or [], env=env, capture_output=True).returncode:
                assert process.poll() is None, process.communicate()
        finally:
            process.terminate()
            process.communicate(timeout=60)


def _run(command: Sequence[str], folder: Path, env: dict[str, str] | None = None) -> str:
    """What a command said; it must end well. Its input is empty, which ends a server over stdio."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _closure(names: Sequence[str]) -> set[str]:
    """These packages and all that they need here, by their canonical names; ours is left out."""
    found: set[str] = set()
    waiting = [Requirement(name) for name in names]
    seen: set[str] = set()
    while waiting:
        wanted = waiting.pop()
        if str(wanted) in seen:
            continue
        seen.add(str(wanted))
        found.add(canonicalize_name(wanted.name))
        extras = wanted.extras or {""}
        for each in map(Requirement, requires(wanted.name) or ()):
            if each.marker is None or any(each.marker.evaluate({"extra": e}) for e in extras):
                waiting.append(each)
    return found - {"interlock"}


def _locked(names: set[str]) -> Iterator[str]:
    """The entries of the lock for these packages, with their hashes, in the versions that are
    installed here.
    """
    texts = [(ROOT / "requirements" / f"{name}.txt").read_text() for name in ("run", "dev")]
    entries = re.split(r"\n(?=\S)", "\n".join(texts))
    left = set(names)
    for entry in entries:
        name = canonicalize_name(re.split(r"[=\s;\[]", entry, maxsplit=1)[0])
        if name in left and f"=={distribution(name).version}" in entry.split("\\")[0]:
            left.discard(name)
            yield entry
    assert not left, f"not in the lock: {left}"
