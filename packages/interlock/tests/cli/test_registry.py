"""`interlock publish`, `search` and `add` against a local registry."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.configs import ServerConfinement, confinement_of, load_config
from interlock.registry.published_schema import schema_problems
from interlock.registry.server_json import SCHEMA, BadServerJson, parse
from tests.cli.registry_server import LocalRegistry, serving

Command = Callable[..., Result]
NAME = "io.github.ada/weather"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalRegistry]:
    """A registry on this machine; the commands use it, and find no login of yours."""
    for name in ("GITHUB_TOKEN", "GH_TOKEN", "INTERLOCK_GITHUB_TOKEN", "INTERLOCK_REGISTRY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_URL", raising=False)
    with serving() as found:
        monkeypatch.setenv("INTERLOCK_REGISTRY", found.address)
        yield found


def wheel(
    folder: Path, *, mark: str = NAME, version: str = "1.2.0", script: str = "weather"
) -> None:
    """Build a wheel's metadata, as a build backend writes it."""
    (folder / "dist").mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / "dist" / f"weather-{version}-py3-none-any.whl", "w") as archive:
        info = f"weather-{version}.dist-info"
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.4\nName: weather\nVersion: {version}\nSummary: The weather.\n"
            "Project-URL: Repository, https://github.com/ada/weather\n\n"
            f"# Weather\n\n<!-- mcp-name: {mark} -->\n",
        )
        archive.writestr(
            f"{info}/entry_points.txt", f"[console_scripts]\n{script} = weather:main\n"
        )


def document(**changed: Any) -> dict[str, Any]:
    """A server of the registry with one package."""
    package = {
        "registryType": "pypi",
        "identifier": "weather",
        "version": "1.2.0",
        "transport": {"type": "stdio"},
    }
    return {
        "name": NAME,
        "description": "The weather.",
        "version": "1.2.0",
        "packages": [package],
        **changed,
    }


# -- publish ---------------------------------------------------------------------------------------


def test_publish_from_a_wheel(
    interlock: Command, home: Path, registry: LocalRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--init writes server.json; the checks pass; GitHub says who you are; the registry has it."""
    wheel(home)
    assert interlock("publish", "--init", NAME).exit_code == 0
    written = json.loads((home / "server.json").read_text(encoding="utf-8"))
    assert written["$schema"] == SCHEMA
    assert schema_problems(written) == []
    checked = interlock("publish", "--dry-run")
    assert "All checks passed" in checked.stdout
    assert registry.requests == []
    registry.github["ghp_1"] = "ada"
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_1")
    published = interlock("publish", "--yes", "--remember")
    assert published.exit_code == 0, published.output
    assert registry.servers[0]["packages"][0]["identifier"] == "weather"
    assert registry.requests == ["POST /v0.1/auth/github-at", "POST /v0.1/publish"]
    assert "ghp_1" not in published.output
    monkeypatch.delenv("GITHUB_TOKEN")
    again = interlock("publish", "--yes")
    assert again.exit_code == 3
    assert "duplicate version" in again.stderr


PROBLEMS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no mark of ownership": ({"mark": "io.github.eve/weather"}, {}, "does not contain the line"),
    "another script": ({"script": "serve"}, {}, "starts a script of that name"),
    "a long description": ({}, {"description": "x" * 101}, "length <= 100"),
    "no namespace": ({}, {"name": "weather"}, "matching regex"),
    "a range": ({}, {"version": "^1.2.0"}, "is a range"),
    "nothing to run": ({}, {"packages": []}, "nobody could use it"),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_is_sent_unless_every_check_passes(
    interlock: Command, home: Path, registry: LocalRegistry, name: str
) -> None:
    """The error says what to change."""
    built, changed, words = PROBLEMS[name]
    wheel(home, **built)
    (home / "server.json").write_text(json.dumps(document(**changed)), encoding="utf-8")
    result = interlock("publish", "--yes")
    assert result.exit_code != 0
    assert words in result.stderr
    assert registry.requests == []


WHOLE: dict[str, Any] = {
    "$schema": SCHEMA,
    "name": NAME,
    "title": "Weather",
    "description": "The weather.",
    "version": "1.2.0",
    "websiteUrl": "https://weather.example/",
    "repository": {"url": "https://github.com/ada/weather", "source": "github", "id": "1"},
    "icons": [{"src": "https://weather.example/i.png", "mimeType": "image/png", "sizes": ["any"]}],
    "packages": [
        {
            "registryType": "pypi",
            "registryBaseUrl": "https://index.example",
            "identifier": "weather",
            "version": "1.2.0",
            "runtimeHint": "uvx",
            "transport": {"type": "stdio"},
            "packageArguments": [{"type": "positional", "valueHint": "city", "format": "string"}],
            "runtimeArguments": [{"type": "named", "name": "--python", "value": "3.12"}],
            "environmentVariables": [{"name": "API_KEY", "isSecret": True}],
        }
    ],
    "remotes": [
        {
            "type": "streamable-http",
            "url": "https://{region}.weather.example/mcp",
            "variables": {"region": {"choices": ["eu", "us"], "default": "eu"}},
            "headers": [{"name": "X-Key", "isRequired": True}],
        }
    ],
    "_meta": {"io.modelcontextprotocol.registry/publisher-provided": {"tool": "interlock"}},
}
BROKEN: list[tuple[str, Any]] = [
    ("$schema", "no address"),
    ("name", "weather"),
    ("title", ""),
    ("description", "x" * 101),
    ("version", 1),
    ("websiteUrl", "weather.example"),
    ("repository/url", "github.com/ada/weather"),
    ("repository/source", None),
    ("repository/id", 1),
    ("icons/0/src", "i.png"),
    ("icons/0/src", f"https://weather.example/{'x' * 255}"),
    ("icons/0/mimeType", "image/gif"),
    ("icons/0/sizes", ["large"]),
    ("icons/0/theme", "blue"),
    ("packages/0/registryType", None),
    ("packages/0/registryBaseUrl", "index.example"),
    ("packages/0/version", "latest"),
    ("packages/0/fileSha256", "abc"),
    ("packages/0/transport", {"type": "pipe"}),
    ("packages/0/transport", {"type": "streamable-http"}),
    ("packages/0/packageArguments/0/format", "path"),
    ("packages/0/packageArguments/0/valueHint", None),
    ("packages/0/packageArguments/0/isRepeated", "yes"),
    ("packages/0/runtimeArguments/0/name", None),
    ("packages/0/runtimeArguments/0/type", "flag"),
    ("packages/0/environmentVariables/0/name", None),
    ("packages/0/environmentVariables/0/isSecret", "yes"),
    ("remotes/0/type", "stdio"),
    ("remotes/0/url", None),
    ("remotes/0/url", "{base}/mcp"),
    ("remotes/0/variables/region/choices", [1]),
    ("remotes/0/headers/0/name", 1),
    ("_meta/io.modelcontextprotocol.registry~1publisher-provided", "interlock"),
]


@pytest.mark.parametrize("change", BROKEN, ids=lambda one: f"{one[0]}={str(one[1])[:20]}")
def test_a_rule_of_the_published_schema(change: tuple[str, Any]) -> None:
    """What the registry refuses is a problem here too."""
    path, value = change
    bad = changed(WHOLE, [each.replace("~1", "/") for each in path.split("/")], value)
    assert schema_problems(bad) != []


def test_a_server_json_is_checked_by_the_schema(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """One with all members may be sent; one with a wrong member that Interlock itself does not
    read may not.
    """
    wheel(home)
    file = home / "server.json"
    file.write_text(json.dumps(WHOLE), encoding="utf-8")
    assert "All checks passed" in interlock("publish", "--dry-run").stdout
    icons = [{"src": "https://weather.example/i.gif", "mimeType": "image/gif"}]
    file.write_text(json.dumps({**WHOLE, "icons": icons}), encoding="utf-8")
    refused = interlock("publish", "--yes")
    assert refused.exit_code == 1
    assert "icons/0/mimeType" in refused.stderr
    assert registry.requests == []


def changed(document: Any, path: list[str], value: Any) -> Any:
    """A copy of a document with another value at a path; None removes it."""
    name, *rest = path
    if isinstance(document, list):
        return [changed(document[0], rest, value), *document[1:]]
    new = changed(document[name], rest, value) if rest else value
    others = {key: each for key, each in document.items() if key != name}
    return others if new is None else {**others, name: new}


def test_publish_from_a_job(
    interlock: Command, home: Path, registry: LocalRegistry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In GitHub Actions the job says who it is, without a secret; without the permission, no."""
    wheel(home)
    (home / "server.json").write_text(json.dumps(document()), encoding="utf-8")
    registry.github["oidc_1"] = "ada"
    place = f"{registry.address}/actions?api-version=2"
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", place)
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "other")
    assert "GitHub gave no token for this job: 401" in interlock("publish", "--yes").stderr
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "job")
    done = interlock("publish", "--yes")
    assert done.exit_code == 0, done.output
    assert registry.requests[-2:] == ["POST /v0.1/auth/github-oidc", "POST /v0.1/publish"]
    assert "oidc_1" not in done.output
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_URL")
    without = interlock("publish", "--yes", "--login", "github-oidc")
    assert without.exit_code == 2
    assert "id-token: write" in without.stderr


@pytest.mark.parametrize("method", ["dns", "http"])
def test_publish_for_a_domain(
    interlock: Command, home: Path, registry: LocalRegistry, method: str
) -> None:
    """The key of the domain signs the time; another namespace is refused."""
    key = Ed25519PrivateKey.generate()
    public = base64.b64encode(key.public_key().public_bytes_raw()).decode()
    registry.keys["example.com"] = f"v=MCPv1; k=ed25519; p={public}"
    wheel(home, mark="com.example/weather")
    file = home / "server.json"
    file.write_text(json.dumps(document(name="com.example/weather")), encoding="utf-8")
    secret = home / "key.hex"
    secret.write_text(key.private_bytes_raw().hex(), encoding="utf-8")
    by_name = () if method == "dns" else ("--login", method)  # dns is what the name means
    done = interlock("publish", "--yes", *by_name, "--key", secret)
    assert done.exit_code == 0, done.output
    assert registry.requests[0] == f"POST /v0.1/auth/{method}"
    wheel(home, mark=NAME)
    file.write_text(json.dumps(document()), encoding="utf-8")
    refused = interlock(
        "publish", "--yes", "--login", method, "--domain", "example.com", "--key", secret
    )
    assert refused.exit_code == 3
    assert "does not include the namespace" in refused.stderr
    other = home / "other.hex"
    other.write_text(Ed25519PrivateKey.generate().private_bytes_raw().hex(), encoding="utf-8")
    file.write_text(json.dumps(document(name="com.example/weather")), encoding="utf-8")
    wheel(home, mark="com.example/weather")
    forged = interlock("publish", "--yes", *by_name, "--key", other)
    assert "signature verification failed" in forged.stderr


def test_publish_without_a_login(interlock: Command, home: Path, registry: LocalRegistry) -> None:
    """The error names what to set."""
    wheel(home)
    (home / "server.json").write_text(json.dumps(document()), encoding="utf-8")
    result = interlock("publish", "--yes")
    assert result.exit_code == 2
    assert "set GITHUB_TOKEN" in result.stderr


# -- search ----------------------------------------------------------------------------------------


def test_search(interlock: Command, registry: LocalRegistry) -> None:
    """Pages are followed; text of the registry cannot write to the terminal."""
    for n in range(5):
        registry.servers.append(document(name=f"io.github.ada/weather-{n}"))
    registry.servers[4]["description"] = "Red \x1b[31m alert"
    registry.status["io.github.ada/weather-3"] = "deprecated"
    found = interlock("search", "weather")
    assert [line.split()[0] for line in found.stdout.splitlines()[::2]] == [
        f"io.github.ada/weather-{n}" for n in range(5)
    ]
    assert "weather-3 1.2.0  (deprecated)" in found.stdout
    assert "\x1b" not in found.stdout
    few = interlock("search", "weather", "--limit", "3", "--json")
    assert len(json.loads(few.stdout)["servers"]) == 3
    assert "No server has" in interlock("search", "nothing").stdout


@pytest.mark.parametrize(
    "page",
    [
        {"servers": "many"},
        {"servers": ["one", {"server": "two"}, {"server": {"name": 3}, "_meta": 4}]},
        {"servers": [None], "metadata": [5]},
        {"servers": [None], "metadata": {"nextCursor": "again"}},
    ],
)
def test_a_search_survives_any_answer(
    interlock: Command, registry: LocalRegistry, monkeypatch: pytest.MonkeyPatch, page: Any
) -> None:
    """What is not a list of servers is left out, and a cursor that leads nowhere ends."""
    monkeypatch.setattr(registry, "answer", lambda *request: (200, page))
    found = interlock("search", "weather")
    assert found.exit_code == 0
    assert isinstance(found.exception, SystemExit | None)


# -- add -------------------------------------------------------------------------------------------

FULL = {
    "registryType": "pypi",
    "identifier": "weather",
    "version": "1.2.0",
    "fileSha256": "a" * 64,
    "transport": {"type": "stdio"},
    "packageArguments": [{"type": "named", "name": "--units", "default": "metric"}],
    "environmentVariables": [
        {"name": "API_KEY", "isRequired": True, "isSecret": True, "description": "The key"},
        {"name": "LEVEL", "value": "{level}!", "variables": {"level": {"default": "low"}}},
        {"name": "EXTRA"},
    ],
}


def test_add_shows_asks_pins_and_confines(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """The entry has the exact version and a sandbox; the secret is not shown; no is no."""
    registry.servers.append(document(packages=[FULL]))
    words = ["add", NAME, "--env", "API_KEY=s3cret"]
    refused = interlock(*words, stdin="n\n")
    assert refused.exit_code != 0
    assert not (home / "mcp.json").exists()
    added = interlock(*words, stdin="y\n")
    assert added.exit_code == 0, added.output
    entry = json.loads((home / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]["weather"]
    assert entry == {
        "command": "uvx",
        "args": ["weather@1.2.0", "--units", "metric"],
        "env": {"API_KEY": "s3cret", "LEVEL": "low!"},
        "sandbox": True,
    }
    for shown in (
        "command: uvx weather@1.2.0 --units metric",
        "digest of the description: sha256:",
        f"digest of the package: sha256:{'a' * 64}",
        "environment: LEVEL=low!",
        "sandbox: yes",
    ):
        assert shown in added.stdout
    assert "s3cret" not in added.output
    taken = interlock(*words, "--yes")
    assert "has an entry 'weather' already" in taken.stderr


def test_a_version_that_changed_is_refused(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """The digest of a version is remembered."""
    registry.servers.append(document())
    assert interlock("add", NAME, "--yes").exit_code == 0
    registry.servers[0] = document(description="Something else.")
    changed = interlock("add", NAME, "--yes", "--as", "again")
    assert changed.exit_code == 1
    assert "is not what it was when you added it" in changed.stderr
    registry.servers.append(document(version="1.3.0"))
    assert interlock("add", NAME, "--yes", "--as", "again").exit_code == 0
    (pins,) = home.rglob("registry.json")
    for damaged in ("{", "[]", '{"a": 1}'):
        pins.write_text(damaged, encoding="utf-8")
        refused = interlock("add", NAME, "--yes", "--as", "third")
        assert refused.exit_code == 1
        assert "Restore it, or move it away" in refused.stderr
        assert pins.read_text(encoding="utf-8") == damaged


def test_other_clients_and_remotes(interlock: Command, home: Path, registry: LocalRegistry) -> None:
    """A client gets an entry of its own form; a remote server is a URL with its headers."""
    remote = {
        "type": "streamable-http",
        "url": "https://{region}.example.com/mcp",
        "variables": {"region": {"default": "eu", "choices": ["eu", "us"]}},
        "headers": [{"name": "X-Key", "isRequired": True, "isSecret": True}],
    }
    registry.servers.append(document(packages=[], remotes=[remote]))
    result = interlock("add", NAME, "--yes", "-e", "X-Key=k", "-e", "region=us", "-c", "cursor")
    assert result.exit_code == 0, result.output
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["weather"]
    assert entry == {"url": "https://us.example.com/mcp", "headers": {"X-Key": "k"}}
    bad = interlock("add", NAME, "--yes", "-e", "X-Key=k", "-e", "region=x", "--as", "b")
    assert "region is one of: eu, us" in bad.stderr
    registry.servers[0] = document(version="2.0.0")
    own = interlock("add", NAME, "--yes", "-c", "cursor", "--as", "local")
    assert "without a sandbox" in own.stderr
    entry = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["local"]
    assert "sandbox" not in entry


def test_secrets_within_words_are_not_shown(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """A secret may be a part of an argument, a header or a URL."""
    secret = {"token": {"isRequired": True, "isSecret": True}}
    package = {
        **FULL,
        "packageArguments": [
            {"type": "named", "name": "--auth", "value": "token={token}", "variables": secret}
        ],
        "environmentVariables": [
            {"name": "URL", "value": "https://{token}@x", "variables": secret}
        ],
    }
    remote = {
        "type": "streamable-http",
        "url": "https://weather.example.com/{token}/mcp",
        "variables": secret,
        "headers": [{"name": "Authorization", "value": "Bearer {token}", "variables": secret}],
    }
    registry.servers.append(document(packages=[package], remotes=[remote]))
    for options in ((), ("--remote", "--as", "other")):
        added = interlock("add", NAME, "--yes", "-e", "token=s3cret", *options)
        assert added.exit_code == 0, added.output
        assert "s3cret" not in added.output
        assert "••••" in added.stdout
        assert "s3cret" in (home / "mcp.json").read_text(encoding="utf-8")


def test_texts_of_the_registry_stay_on_their_line(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """A line break in an argument cannot pretend to be another line of what is shown."""
    told = "x\n  command: uvx good@1.0.0"
    package = {**FULL, "packageArguments": [{"type": "positional", "value": told}]}
    registry.servers.append(document(description=told, packages=[package]))
    shown = interlock("add", NAME, "--dry-run", "-e", "API_KEY=k").stdout
    assert len([line for line in shown.splitlines() if line.startswith("  command:")]) == 1


def test_a_container_is_not_put_into_the_sandbox(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """The program in a sandbox would be the command of Docker, which needs Docker's socket."""
    image = {
        "registryType": "oci",
        "identifier": "registry.example/weather:1.2.0",
        "transport": {"type": "stdio"},
    }
    registry.servers.append(document(packages=[image]))
    added = interlock("add", NAME, "--yes")
    assert added.exit_code == 0, added.output
    entry = json.loads((home / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]["weather"]
    assert entry == {
        "command": "docker",
        "args": ["run", "-i", "--rm", "registry.example/weather:1.2.0"],
        "sandbox": False,
    }
    assert "confined by its container" in added.stderr
    assert confinement(home) == ServerConfinement()


def test_without_a_sandbox_means_that_the_host_starts_none(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """A server of mcp.json, a project's file, is confined unless its entry says otherwise."""
    registry.servers.append(document())
    added = interlock("add", NAME, "--yes", "--no-sandbox")
    assert added.exit_code == 0, added.output
    assert "without a sandbox, with your permissions" in added.stderr
    assert confinement(home) == ServerConfinement()


def test_another_product_gets_no_key_of_ours(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """Other clients have no sandbox, and may refuse keys that they do not know."""
    registry.servers.append(document())
    added = interlock("add", NAME, "--yes", "--client", "cursor", "--config", str(home / "c.json"))
    assert added.exit_code == 0, added.output
    assert "sandbox" not in (home / "c.json").read_text(encoding="utf-8")


def confinement(folder: Path) -> ServerConfinement:
    """How the host starts the server that was added to mcp.json."""
    (entry,) = load_config(folder / "mcp.json").entries
    return confinement_of(entry)


def test_a_command_of_the_registry_is_judged(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """A registry names the options of docker, which can open the whole machine to the container."""
    image = {
        "registryType": "oci",
        "identifier": "registry.example/weather:1.2.0",
        "transport": {"type": "stdio"},
        "runtimeArguments": [{"type": "named", "name": "--volume", "value": "/:/host"}],
    }
    registry.servers.append(document(packages=[image]))
    shown = interlock("add", NAME, "--dry-run")
    assert "It gives a container access to the whole machine." in shown.stderr


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "an option as a name": ({"identifier": "--help"}, "is not the name of a package"),
    "an option as a name for npx": (
        {"registryType": "npm", "identifier": "--call", "runtimeHint": "npx"},
        "is not the name of a package",
    ),
    "a command as a name": ({"identifier": "x; rm -rf ~"}, "is not the name of a package"),
    "a URL as a name": ({"identifier": "https://evil.example/x.whl"}, "is not the name"),
    "an option as a version": ({"version": "-x"}, "is not a version"),
    "no version": ({"version": None}, "cannot be pinned"),
    "another runtime": ({"runtimeHint": "bash"}, "wants to be run by 'bash'"),
    "an unknown kind": ({"registryType": "cargo"}, "cannot be run"),
    "a variable that is none": (
        {"environmentVariables": [{"name": "A=B", "value": "x"}]},
        "is not the name of an environment variable",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_the_registry_cannot_become_commands(
    interlock: Command, home: Path, registry: LocalRegistry, name: str
) -> None:
    """Nothing is written."""
    changed, words = HOSTILE[name]
    package = {**document()["packages"][0], **changed}
    registry.servers.append(document(packages=[package]))
    result = interlock("add", NAME, "--yes")
    assert result.exit_code != 0
    assert words in result.stderr
    assert not (home / "mcp.json").exists()


def test_a_removed_server_is_not_added(
    interlock: Command, home: Path, registry: LocalRegistry
) -> None:
    """The registry marks it as deleted; one that does not exist is an error of the registry."""
    registry.servers.append(document())
    registry.status[NAME] = "deleted"
    assert "was removed from the registry" in interlock("add", NAME, "--yes").stderr
    missing = interlock("add", "io.github.ada/none", "--yes")
    assert missing.exit_code == 3
    assert "Server not found" in missing.stderr


def test_the_address_of_a_registry(interlock: Command, home: Path) -> None:
    """Only https, or this machine."""
    result = interlock("search", "x", "--registry", "http://registry.example")
    assert result.exit_code == 2
    assert "begins with https://" in result.stderr


def test_rules_of_server_json() -> None:
    """Positional arguments need a value or a hint; the publisher's metadata is small."""
    assert parse(document()).name == NAME
    wrong = {**FULL, "packageArguments": [{"type": "positional"}]}
    with pytest.raises(BadServerJson, match="needs a value"):
        parse(document(packages=[wrong]))
    meta = {"io.modelcontextprotocol.registry/publisher-provided": {"x": "y" * 5000}}
    with pytest.raises(BadServerJson, match="4096"):
        parse(document(_meta=meta))
    with pytest.raises(BadServerJson, match="not JSON"):
        parse(b"{")
