"""The settings of the gateway: the table of the guide, the defaults, and the words for mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock_apps.gateway.settings import (
    BadSettings,
    Settings,
    bytes_of,
    check_exposure,
    parse_settings,
    rate_of,
    read_settings,
    seconds_of,
    setting_rows,
    settings_from_config,
    with_options,
)
from tests.gateway.behind import settings_of

DEFAULTS = {
    ("[listen]", "http"): '":8080"',
    ("[listen]", "url"): '""',
    ("[listen]", "guard"): '""',
    ("[listen]", "workers"): "1",
    ("[listen]", "store"): '"memory:"',
    ("[servers.NAME]", "identity"): '"service"',
    ("[servers.NAME]", "shared"): "true",
    ("[servers.NAME]", "idle"): '"10m"',
    ("[servers.NAME]", "most"): "50",
    ("[servers.NAME]", "required"): "false",
    ("[servers.NAME]", "prefix"): "unset",
    ("[views.NAME]", "servers"): "unset",
    ("[views.NAME]", "tools"): "unset",
    ("[views.NAME]", "without"): "[]",
    ("[views.NAME]", "scopes"): "[]",
    ("[views.NAME]", "search"): '"auto"',
    ("[policy]", "file"): '""',
    ("[policy]", "lock"): '"interlock.lock"',
    ("[policy]", "hook"): '""',
    ("[policy]", "hook_mode"): '"enforce"',
    ("[limits]", "rates"): "{}",
    ("[limits]", "queue"): "100",
    ("[limits]", "size"): '"16 MiB"',
    ("[audit]", "file"): '""',
    ("[audit]", "arguments"): "false",
}
GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "gateway.md"


def test_every_setting_has_a_default_and_a_line_in_the_guide() -> None:
    rows = list(setting_rows())
    assert {(row.section, row.name): row.default for row in rows} == DEFAULTS
    assert len(rows) <= 25
    guide = GUIDE.read_text(encoding="utf-8")
    for row in rows:
        assert row.description
        assert "\n" not in row.description
        line = f"| `{row.section}` | `{row.name}` | `{row.default}` | {row.description} |"
        assert line in guide


def test_nothing_is_required() -> None:
    settings = settings_of("")
    assert settings == Settings(source=Path("gateway.toml"))
    assert settings.address == ("127.0.0.1", 8080)
    assert settings.is_loopback
    check_exposure(settings)


def test_the_entry_of_a_server_is_that_of_any_client() -> None:
    settings = parse_settings(
        """
        [servers.crm]
        url = "https://crm.example/mcp"
        headers = { "X-Team" = "${TEAM}" }
        identity = "user"
        [servers.files]
        command = ["files", "/srv"]
        shared = false
        prefix = ""
        """,
        Path("/etc/gateway.toml"),
        {"TEAM": "blue"},
    )
    assert settings.entries["crm"].headers == {"X-Team": "blue"}
    assert settings.entries["files"].command == ("files", "/srv")
    assert settings.servers["crm"].is_personal
    assert settings.servers["files"].prefix_of("files") is None
    assert settings.servers["crm"].prefix_of("crm") == "crm"


@pytest.mark.parametrize(
    "text, words",
    [
        ("[listen]\nhtpp = ':1'", "gateway.toml:2: [listen.htpp] 'htpp' is not a setting; did"),
        ("[lissten]\n", "gateway.toml:1: [lissten] 'lissten' is not a setting; did you mean 'li"),
        ("[listen]\nworkers = 'two'", "workers is 'two', and must be a number of at least 1"),
        ("[listen]\nworkers = 0", "workers is 0, and must be a number of at least 1, at most 256"),
        ("[listen]\nhttp = 'x'", "gateway.toml:2: [listen.http] 'x' is not an address"),
        ("[listen]\nurl = 'mcp.example'", "is not a URL such as https://mcp.example.com"),
        ("[listen]\nurl = 'https://x.example/mcp'", "the URL of the host alone"),
        ("[listen]\nguard = 'login'", "is not the URL of an authorization server"),
        ("[listen]\nstore = 'mongo:'", "is not memory:, sqlite:///PATH or redis://HOST"),
        ("[servers.a]\ncommand=['a']\nshred = true", "gateway.toml:3: [servers.a] 'shred'"),
        ("[servers.a]\ncommand=['a']\nidentity = 'usr'", "must be one of none, service, user"),
        ("[servers.a]\ncommand=['a']\nidentity = 'user'", "needs a server with an http(s) url"),
        ("[servers.a]\ncommand=['a']\nidle = 'long'", "'long' is not a duration"),
        ("[servers.a__b]\ncommand=['a']", "'a__b' cannot be a name"),
        ("[servers.a]\n", "gateway.toml:1: [servers.a] left out: "),
        ("[servers]\na = 1", "it must be a table: [servers.a]"),
        ("[servers.a]\ncommand=['a']\nx = 2020-01-01", "a value is a date"),
        ("[views.x]\nservers = ['crn']\n[servers.crm]\ncommand=['a']", "did you mean 'crm'?"),
        ("[views.mcp]\n", "/mcp is a path of the gateway itself"),
        ("[views.x]\ntools = 'a'", "tools is 'a', and must be a list of texts"),
        ("[limits]\nsize = 'big'", "'big' is not a size"),
        ("[limits.rates]\nuser = '1/s'", "'user' is not principal, server:NAME or tool:NAME"),
        ("[limits.rates]\nprincipal = 'often'", "'often' is not a rate"),
        ("[policy]\nhook_mode = 'off'", "must be one of enforce, audit"),
        ("listen = 1", "it must be a table: [listen]"),
        ("[listen", "it is not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_what_to_write(text: str, words: str) -> None:
    with pytest.raises(BadSettings) as raised:
        settings_of(text)
    assert words in str(raised.value)


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(BadSettings) as raised:
        settings_of("[listen]\nhtpp = ':1'\nworkers = 0\n[audit]\nfiel = 'x'")
    assert len(str(raised.value).splitlines()) == 3


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="it cannot be read"):
        read_settings(tmp_path / "gone.toml")
    latin = tmp_path / "latin.toml"
    latin.write_bytes("# caf\xe9".encode("latin-1"))
    with pytest.raises(BadSettings, match="not UTF-8"):
        read_settings(latin)


def test_the_servers_of_a_client(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    servers = {
        "crm": {"command": "crm"},
        "off": {"command": "off", "disabled": True},
        "bad__name": {"command": "x"},
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    settings = settings_from_config(path)
    assert list(settings.entries) == ["crm"]
    assert any("bad__name" in str(problem) for problem in settings.problems)
    path.write_text('{"mcpServers": {}}')
    with pytest.raises(BadSettings):
        settings_from_config(path)


def test_a_network_needs_a_guard_and_a_url() -> None:
    open_to_all = with_options(settings_of(""), http="0.0.0.0:80")
    with pytest.raises(BadSettings, match="does not listen on 0.0.0.0 without a guard"):
        check_exposure(open_to_all)
    guarded = settings_of('[listen]\nhttp = "0.0.0.0:80"\nguard = "https://login.example"')
    with pytest.raises(BadSettings, match="Set url under"):
        check_exposure(guarded)
    check_exposure(
        settings_of(
            '[listen]\nhttp = "0.0.0.0:80"\nguard = "https://login.example"\n'
            'url = "https://mcp.example"'
        )
    )


def test_options_of_the_command_line_replace_those_of_the_file() -> None:
    settings = with_options(settings_of("[listen]\nworkers = 3"), http="9000")
    assert settings.address == ("127.0.0.1", 9000)
    assert settings.listen.workers == 3
    with pytest.raises(BadSettings, match="--http"):
        with_options(settings, http="nine")


@pytest.mark.parametrize(
    "text, seconds", [("10", 10), ("10m", 600), ("1.5h", 5400), ("250ms", 0.25), ("1d", 86400)]
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_sizes_and_rates() -> None:
    assert bytes_of("16 MiB") == 16 << 20
    assert bytes_of("5kB") == 5000
    assert rate_of("600/m") == (600, 60.0)
    assert rate_of("10 / second") == (10, 1.0)
    for bad in ("0/s", "x"):
        with pytest.raises(ValueError, match="not a rate"):
            rate_of(bad)
