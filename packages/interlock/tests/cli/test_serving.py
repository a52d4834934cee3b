"""Serving over HTTP from the command line: `--http` and its options, how it ends, and what keeps it
from beginning.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Command, Program

Serve = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def serve(home: Path) -> Iterator[Serve]:
    """Starts `interlock ...` and gives the process and the address that it names."""
    processes = []

    def start(*words: str | Path) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "interlock", *map(str, words)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stderr is not None
        said = process.stderr.readline()
        assert said.startswith("Serving at http://"), said
        return process, said.removeprefix("Serving at ").strip()

    yield start
    for process in processes:
        process.terminate()
        process.communicate(timeout=30)


def status(url: str, **headers: str) -> int:
    """The status that a plain GET is answered with."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=10
        ) as response:
            return int(response.status)
    except urllib.error.HTTPError as bad:
        with bad:
            return bad.code


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT], ids=str)
@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=" ".join)
def test_it_serves_until_it_is_told_to_end(
    interlock: Command, everyday: Path, serve: Serve, workers: list[str], ending: int
) -> None:
    """One process or several: both eras, the health check, and an end with code 0."""
    process, url = serve("run", everyday, "--http", ":0", *workers)
    for revision in ("2026-07-28", "2025-11-25"):
        assert interlock("call", url, "add", "a=1", "--revision", revision).stdout == "3\n"
    assert status(url.replace("/mcp", "/health")) == 200
    process.send_signal(ending)
    errors = process.communicate(timeout=30)[1]
    assert (process.returncode, errors) == (0, "")
    assert interlock("ping", url).exit_code == 4


def test_a_store_keeps_sessions(
    interlock: Command, everyday: Path, serve: Serve, tmp_path: Path
) -> None:
    """`--store` with a file: it is made where it is named."""
    _, url = serve(
        "run", everyday, "--http", "127.0.0.1:0", "--store", f"sqlite:///{tmp_path}/kept.db"
    )
    assert interlock("call", url, "add", "a=1", "--revision", "2025-11-25").stdout == "3\n"
    assert (tmp_path / "kept.db").exists()


def test_names_and_pages(everyday: Path, serve: Serve) -> None:
    """`--allow-host` and `--cors` let in who would be refused (`HTL-51`, `HTM-22`)."""
    _, url = serve(
        "run",
        everyday,
        "--http",
        ":0",
        "--allow-host",
        "shop.example",
        "--cors",
        "https://app.example",
    )
    assert (
        status(url, Host="shop.example") == status(url, Origin="https://app.example") == 400
    )  # it lacks a session
    assert status(url, Host="other.example") == 403
    assert status(url, Origin="https://other.example") == 403


def test_a_server_that_comes_along(interlock: Command, serve: Serve) -> None:
    """`interlock serve NAME` has the same options, `--transport http` is the long form."""
    _, url = serve(
        "serve", "everything", "--transport", "http", "--port", "0", "--serve-legacy-sse"
    )
    assert interlock("call", url, "add", "a=1", "b=2").exit_code == 0
    assert interlock("ping", url.replace("/mcp", "/sse"), "--legacy-sse").exit_code == 0


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--http", "8000"], "--http takes [HOST]:PORT, such as :8000 or 0.0.0.0:8000, not 8000"),
        (["--http", ":99999"], "not :99999"),
        (["--http", "http://localhost:8000"], "--http takes [HOST]:PORT"),
        (["--http", ":0", "--transport", "tcp"], "--http is short for"),
        (["--http", ":0", "--port", "1"], "--http is short for"),
        (["--http", ":0", "--host", "0.0.0.0"], "--http is short for"),
        (["--http", ":0", "--path", "s"], "--path is for --transport unix"),
        (["--http", ":0", "--reload"], "--reload is for --transport stdio"),
        (["--http", ":0", "--workers", "0"], "--workers"),
        (["--http", ":0", "--store", "mysql://x:secret@y"],
            "--store: mysql: names no store: there are memory:, sqlite:///"),
        (["--workers", "2"], "are for --http"),
        (["--store", "memory:"], "are for --http"),
        (["--transport", "tcp", "--port", "1", "--cors", "*"], "are for --http"),
        (["--transport", "tcp", "--port", "1", "--path", "s"], "--path is for --transport unix"),
        (["--transport", "unix", "--path", "s", "--port", "1"], "--host and --port are for"),
        (["--host", "0.0.0.0"], "--host and --port are for"),
    ],
)  # fmt: skip
def test_options_out_of_place(
    interlock: Command, everyday: Path, words: list[str], expected: str
) -> None:
    """Code 2, before anything listens; a password is not repeated."""
    result = interlock("run", everyday, *words)
    assert result.exit_code == 2, result.output
    assert expected in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=" ".join)
def test_what_keeps_it_from_serving(
    program_run: Program, everyday: Path, workers: list[str]
) -> None:
    """A port that is taken, a host that is not ours, stores that are not there: code 1 and one
    line.
    """
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = {
            f"127.0.0.1:{port}": (
                [],
                f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n",
            ),
            "192.0.2.1:0": (
                [],
                "Error: cannot listen on 192.0.2.1:0: Cannot assign requested address\n",
            ),
            ":0": (
                ["--store", "sqlite:///no/such/folder/x.db"],
                "Error: the store /no/such/folder/x.db cannot be opened",
            ),
        }
        for address, (options, expected) in cases.items():
            result = program_run("run", everyday, "--http", address, *options, *workers)
            assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
            assert result.stderr.startswith(expected)
    result = program_run(
        "run", everyday, "--http", ":0", "--store", f"redis://:secret@127.0.0.1:{port}", *workers
    )
    assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
    assert f"the Redis server at 127.0.0.1:{port} cannot be used" in result.stderr
    assert "secret" not in result.stderr


@pytest.mark.parametrize(
    "package, options, extra",
    [
        ("httptools", [], "http"),
        ("httptools", ["--workers", "2"], "http"),
        ("redis", ["--store", "redis://x"], "redis"),
    ],
)
def test_without_an_extra_it_says_what_to_install(
    home: Path, everyday: Path, package: str, options: list[str], extra: str
) -> None:
    """Code 1 and one line."""
    words = ["run", str(everyday), "--http", ":0", *options]
    program = (
        f"import sys; sys.modules[{package!r}] = None\nfrom interlock.cli import main\n"
        f"main({words!r})"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert (result.returncode, result.stderr.count("\n")) == (1, 1), result.stderr
    assert f"pip install 'interlock[{extra}]'" in result.stderr


def test_a_lifespan_that_fails_is_its_authors_matter(program_run: Program, home: Path) -> None:
    """Whoever wrote it is shown where; a port that is taken is not a matter of the file."""
    (home / "late.py").write_text(
        "from contextlib import asynccontextmanager\nfrom interlock import Server\n\n"
        "@asynccontextmanager\nasync def life(server):\n    open('no-such-file')\n    yield "
        "None\n\nserver = Server('late', lifespan=life)\n"
    )
    result = program_run("run", "late.py", "--http", ":0")
    assert result.returncode == 1
    assert 'late.py", line 6, in life\n' in result.stderr
    assert result.stderr.endswith("No such file or directory: 'no-such-file'\n")
    assert "click" not in result.stderr


def test_the_address_is_said_as_a_url(everyday: Path, serve: Serve) -> None:
    """Brackets around an address with colons; the health check is at the same place."""
    _, url = serve("run", everyday, "--http", "[::1]:0")
    assert url.startswith("http://[::1]:")
    with urllib.request.urlopen(url.replace("/mcp", "/health"), timeout=10) as response:
        assert json.load(response) == {"status": "ok"}
