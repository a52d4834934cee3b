"""The wheels: built, installed into empty environments from the built files, and used like a user
would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts import dist
from tests.architecture import locks

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "packages"
pytestmark = [pytest.mark.interop, pytest.mark.slow]

SERVER = '''
from interlock import Server

server = Server("kitchen")


@server.tool
async def scale(grams: float, guests: int = 4) -> float:
    """Scale an amount that is meant for four."""
    return grams * guests / 4


if __name__ == "__main__":
    server.run()
'''


def extras() -> list[str]:
    """The extras of the library."""
    text = (PACKAGES / "interlock" / "pyproject.toml").read_text(encoding="utf-8")
    return list(tomllib.loads(text)["project"]["optional-dependencies"])


class Environment:
    """A separate environment that contains only the packages that pip installed from the wheels."""

    def __init__(self, folder: Path, wheels: Path, extra: str) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        pins = {
            name: version
            for lock in ("run.txt", "dev.txt")
            for name, version in locks.pins(ROOT / "requirements" / lock).items()
        }
        constraints = folder / "constraints.txt"
        constraints.write_text("".join(f"{name}=={pins[name]}\n" for name in sorted(pins)))
        (library,) = wheels.glob("interlock-*.whl")
        wanted = f"{library}[{extra}]" if extra else str(library)
        links = ("--find-links", str(wheels), "--constraint", str(constraints))
        self.pip("install", "--quiet", "--only-binary", ":all:", *links, wanted)

    def pip(self, *words: str) -> str:
        """Run pip on this environment, from outside."""
        own = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        if not _has_pip(sys.executable):
            own[0] = str(_base_interpreter())
        return _run([*own, "--python", str(self.folder / "bin" / "python"), *words], self.folder)

    def run(self, *words: str, code: int = 0) -> str:
        """Run a program of this environment and return its output on both streams."""
        return _run([str(self.folder / "bin" / words[0]), *words[1:]], self.folder, code=code)

    def distributions(self) -> set[str]:
        """The names of the installed distributions."""
        return {
            one["name"].lower().replace("_", "-")
            for one in json.loads(self.pip("list", "--format", "json"))
        }


def _has_pip(interpreter: str) -> bool:
    found = subprocess.run([interpreter, "-c", "import pip"], capture_output=True, check=False)
    return found.returncode == 0


def _base_interpreter() -> Path:
    """The interpreter that created the environment of the tests: it has pip."""
    return (
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )


def _run(command: list[str], home: Path, *, code: int = 0) -> str:
    ran = subprocess.run(
        command,
        cwd=home,
        env=_environment(home),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == code, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def _environment(home: Path) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    path = f"{home / 'bin'}{os.pathsep}{own['PATH']}"
    return own | {
        "HOME": str(home),
        "XDG_DATA_HOME": str(home / "data"),
        "PATH": path,
        "COLUMNS": "200",
    }


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    dist.build(folder)
    return folder


@pytest.fixture
def environment(
    tmp_path: Path, wheels: Path, request: pytest.FixtureRequest
) -> Iterator[Environment]:
    """The environment of one extra, or of the core; removed at the end because it is large."""
    folder = tmp_path / "environment"
    yield Environment(folder, wheels, request.param)
    shutil.rmtree(folder)


@contextmanager
def started(environment: Environment, *words: str) -> Iterator[str]:
    """Start a program that prints one address on loopback; yield the address."""
    command = [str(environment.folder / "bin" / words[0]), *words[1:]]
    process = subprocess.Popen(
        command,
        cwd=environment.folder,
        env=_environment(environment.folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        seen = ""
        for line in process.stdout:
            seen += line
            if found := re.search(r"http://[\w.\[\]:]+:\d+[^\s]*", line):
                yield found[0]
                break
        else:
            raise AssertionError(seen)
    finally:
        process.terminate()
        process.communicate(timeout=30)


def page(address: str) -> str:
    """A page, fetched like a browser with cookies."""
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor()
    )
    with opener.open(address, timeout=30) as response:
        text: str = response.read().decode()
    return text


def test_all_distributions_have_one_version() -> None:
    """They are released together, and require each other in that version."""
    texts = {
        path.parent.name: path.read_text("utf-8") for path in PACKAGES.glob("*/pyproject.toml")
    }
    assert texts.keys() == set(dist.DISTRIBUTIONS)
    versions = {tomllib.loads(text)["project"]["version"] for text in texts.values()}
    assert len(versions) == 1
    (version,) = versions
    asked = [
        one for text in texts.values() for one in re.findall(r'"interlock[^"]*==([^"]+)"', text)
    ]
    assert asked
    assert set(asked) == {version}


def test_wheels_hold_the_package_and_its_license_alone(wheels: Path) -> None:
    """No tests, no caches, nothing of another distribution."""
    for wheel in wheels.glob("*.whl"):
        package = wheel.name.split("-")[0]
        names = zipfile.ZipFile(wheel).namelist()
        assert {name.split("/")[0] for name in names} == {
            package,
            f"{package}-{wheel.name.split('-')[1]}.dist-info",
        }
        assert [name for name in names if "__pycache__" in name or "/tests/" in name] == []
        assert any(name.endswith("LICENSE") for name in names)
        assert f"{package}/__init__.py" in names


@pytest.mark.parametrize("environment", [""], indirect=True, ids=["core"])
def test_the_core(environment: Environment) -> None:
    """It installs three packages besides itself; the command works, a server is called, and the
    error for a missing feature names its extra."""
    assert environment.distributions() == {"interlock", "msgspec", "jsonschema-rs", "click"}
    assert environment.run("interlock", "--version").startswith("interlock ")
    (environment.folder / "server.py").write_text(SERVER)
    assert "450" in environment.run(
        "interlock", "call", "server.py", "scale", "grams=300", "guests=6"
    )
    assert "scale" in environment.run("interlock", "list", "server.py")
    for words, extra in [
        (("serve", "filesystem", "."), "servers"),
        (("tour",), "servers"),
        (("host",), "host"),
        (("chat",), "host"),
        (("ask", "x"), "host"),
        (("demo",), "demo"),
        (("auth", "serve"), "issuer"),
    ]:
        said = environment.run("interlock", *words, code=2)
        assert f"interlock[{extra}]" in said, said
        assert "Traceback" not in said
    said = environment.run("interlock", "run", "server.py", "--http", "127.0.0.1:0", code=1)
    assert "interlock[http]" in said


@pytest.mark.parametrize("environment", extras(), indirect=True)
def test_each_extra_can_be_installed(environment: Environment) -> None:
    """Its packages are compatible, and the command still starts."""
    assert environment.run("interlock", "--version").startswith("interlock ")
    assert "No broken requirements found" in environment.pip("check")


@pytest.mark.parametrize("environment", ["http"], indirect=True)
def test_a_server_over_http(environment: Environment) -> None:
    """The command starts it, and calls it."""
    (environment.folder / "server.py").write_text(SERVER)
    with started(environment, "interlock", "run", "server.py", "--http", "127.0.0.1:0") as address:
        assert "450" in environment.run(
            "interlock", "call", address, "scale", "grams=300", "guests=6"
        )


@pytest.mark.parametrize("environment", ["servers"], indirect=True)
def test_the_reference_servers(environment: Environment) -> None:
    """`interlock serve filesystem` shows the folder that it is given."""
    folder = environment.folder / "notes"
    folder.mkdir()
    (folder / "shopping.txt").write_text("tea\n")
    assert "filesystem" in environment.run("interlock", "serve", "--list")
    served = (
        "--",
        str(environment.folder / "bin" / "interlock"),
        "serve",
        "filesystem",
        str(folder),
    )
    assert "shopping.txt" in environment.run("interlock", "call", "show_tree", *served)


@pytest.mark.parametrize("environment", ["host"], indirect=True)
def test_the_first_page_of_the_host(environment: Environment) -> None:
    """It is served at the address that the host prints."""
    (environment.folder / "server.py").write_text(SERVER)
    python = str(environment.folder / "bin" / "python")
    entry = {"kitchen": {"command": python, "args": ["server.py"]}}
    (environment.folder / ".mcp.json").write_text(json.dumps({"mcpServers": entry}))
    with started(
        environment, "interlock", "host", "--config", ".mcp.json", "--model", "planner"
    ) as address:
        assert "<title>" in page(address)


@pytest.mark.parametrize("environment", ["demo"], indirect=True)
def test_the_demo(environment: Environment) -> None:
    """Its page is served, with the four servers of the demo."""
    with started(environment, "interlock", "demo", "--folder", "demo") as address:
        assert "<title>" in page(address)


@pytest.mark.parametrize("environment", ["issuer"], indirect=True)
def test_the_issuer(environment: Environment) -> None:
    """Its commands and its public names are available."""
    assert "authorization server" in environment.run("interlock", "auth", "serve", "--help")
    program = "import interlock_issuer as i; print(i.Issuer.__name__, i.OAuthProxy.__name__)"
    assert environment.run("python", "-c", program).split() == ["Issuer", "OAuthProxy"]
