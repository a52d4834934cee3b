"""Hosts of other makers with a server of ours that `interlock install` wrote into their
configuration: they connect to it, and a model calls its tools."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interop.hosts.codex_interface import CodexInterface
from tests.interop.hosts.scripted_model import ScriptedModel
from tests.ports import free_port

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SERVER = Path(__file__).with_name("hosts") / "hello.py"
WAYS = pytest.mark.parametrize("way", ["stdio", "http"])
SECONDS = 120


class Machine:
    """A home folder with hosts that know nothing but what the test configures."""

    def __init__(self, home: Path, programs: Path) -> None:
        self.home = home
        self.programs = programs
        own = {
            name: os.environ[name]
            for name in ("PATH", "LANG", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
            if name in os.environ
        }
        self.env = {
            **own,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
            "XDG_STATE_HOME": str(home / ".local" / "state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "CODEX_HOME": str(home / ".codex"),
            "TERM": "dumb",
            "NO_COLOR": "1",
            "CI": "1",
        }

    def run(self, *words: str, code: int | None = 0, **env: str) -> str:
        """Run a program of the hosts and return what it writes."""
        done = subprocess.run(
            [str(self.programs / words[0]), *words[1:]],
            cwd=self.home / "work",
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert code is None or done.returncode == code, done.stdout
        return done.stdout

    def install(self, client: str, target: str) -> None:
        """Install the server, as the quickstart says."""
        words = ["install", target, "--client", client, "--name", "hello"]
        done = subprocess.run(
            [sys.executable, "-m", "interlock", *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def machine(tmp_path: Path, installed: Callable[[str], Path]) -> Machine:
    """A machine with the three hosts."""
    for folder in ("work", ".config", ".codex", ".gemini"):
        (tmp_path / folder).mkdir()
    modules = installed("npm-hosts") / "node_modules"
    # Gemini CLI starts servers only in folders that the user trusts.
    trusted = {str(tmp_path / "work"): "TRUST_FOLDER"}
    (tmp_path / ".gemini" / "trustedFolders.json").write_text(json.dumps(trusted))
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (tmp_path / ".gemini" / "settings.json").write_text(json.dumps(settings))
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("gemini", "codex"):
        (programs / name).symlink_to(modules / ".bin" / name)
    (programs / "opencode").symlink_to(modules / "opencode-linux-x64" / "bin" / "opencode")
    return Machine(tmp_path, programs)


@contextmanager
def target(way: str) -> Iterator[str]:
    """What is installed: the file of the server, or the address of the running server."""
    if way == "stdio":
        yield str(SERVER)
        return
    port = free_port()
    words = [sys.executable, "-m", "interlock", "run", str(SERVER), "--http", f":{port}"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline().startswith("Serving at")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.communicate(timeout=300)


@WAYS
def test_gemini_cli_connects(machine: Machine, way: str) -> None:
    """Its own list says that the server is connected."""
    with target(way) as where:
        machine.install("gemini", where)
        assert "Connected" in machine.run("gemini", "mcp", "list")


@WAYS
def test_opencode_connects(machine: Machine, way: str) -> None:
    """Its own list says that the server is connected."""
    with target(way) as where:
        machine.install("opencode", where)
        listed = machine.run("opencode", "mcp", "list")
        assert "hello" in listed
        assert "connected" in listed


@WAYS
def test_codex_lists_the_server(machine: Machine, way: str) -> None:
    with target(way) as where:
        machine.install("codex", where)
        listed = machine.run("codex", "mcp", "list")
        assert "hello" in listed
        assert (where if way == "http" else SERVER.name) in listed


@WAYS
def test_a_model_in_gemini_cli_calls_a_tool(machine: Machine, way: str) -> None:
    with target(way) as where, ScriptedModel("greet", {"name": "Ada"}).serving() as model:
        machine.install("gemini", where)
        said = machine.run(
            "gemini",
            *("--prompt", "Greet Ada.", "--approval-mode", "yolo", "--model", "gemini-2.5-flash"),
            GEMINI_API_KEY="none",
            GOOGLE_GEMINI_BASE_URL=model.url,
        )
        assert "The server says: Hello, Ada!" in said


@WAYS
def test_a_model_in_codex_calls_a_tool(machine: Machine, way: str) -> None:
    with target(way) as where, ScriptedModel("greet", {"name": "Ada"}).serving() as model:
        machine.install("codex", where)
        provider = f'{{name="local", base_url="{model.url}/v1", wire_api="responses"}}'
        said = machine.run(
            "codex",
            *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *("-c", f"model_providers.local={provider}", "-c", 'model_provider="local"'),
            *("-c", 'model="model-1"', "-c", "mcp_servers.hello.required=true", "Greet Ada."),
        )
        assert "The server says: Hello, Ada!" in said


@WAYS
def test_a_user_of_codex_answers_the_question_of_a_tool(machine: Machine, way: str) -> None:
    """The form reaches the user interface, and the tool gets the answer."""
    with target(way) as where, ScriptedModel("greet_the_user", {}).serving() as model:
        machine.install("codex", where)
        provider = f'{{name="local", base_url="{model.url}/v1", wire_api="responses"}}'
        words = ["app-server", "-c", f"model_providers.local={provider}"]
        words += ["-c", 'model_provider="local"', "-c", "mcp_servers.hello.required=true"]
        command = [str(machine.programs / "codex"), *words]
        codex = CodexInterface(command, machine.env, machine.home / "work", {"value": "Ada"})
        try:
            codex.converse(
                "Greet me.",
                model="model-1",
                approvalPolicy="on-request",
                sandbox="danger-full-access",
            )
        finally:
            codex.close()
        assert [(one["serverName"], one["message"]) for one in codex.asked] == [
            ("hello", "What is your name?")
        ]
        assert "The server says: Hello, Ada!" in codex.said


@WAYS
def test_a_model_in_opencode_calls_a_tool(machine: Machine, way: str) -> None:
    with target(way) as where, ScriptedModel("greet", {"name": "Ada"}).serving() as model:
        machine.install("opencode", where)
        (machine.home / "work" / "opencode.json").write_text(
            """{"provider": {"local": {"npm": "@ai-sdk/openai-compatible", "name": "local",
                "options": {"baseURL": "ADDRESS/v1", "apiKey": "none"},
                "models": {"model-1": {"name": "model-1", "tool_call": true}}}}}""".replace(
                "ADDRESS", model.url
            )
        )
        said = machine.run("opencode", "run", "--model", "local/model-1", "Greet Ada.")
        assert "The server says: Hello, Ada!" in said
