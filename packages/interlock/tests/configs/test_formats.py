"""Documents of each product, as each product documents its format, come to the same kind of
entries.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interlock import Client
from interlock.configs import FORMATS, Entry, read_config

ENV = {
    "HOME": "/home/ada",
    "PORT": "8443",
    "TRIPS_TOKEN": "tok-8d1f77",
    "MAPS_KEY": "maps-5520c",
    "API_HOST": "maps.example.net",
}
FOLDER = Path("/srv/holiday")

CLAUDE_DESKTOP = """{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@example/files", "/home/ada/Documents"],
        "env": {"LEVEL": "info"}}
  }
}"""

CLAUDE_CODE = """{
  "mcpServers": {
    "trips": {"type": "http", "url": "https://${API_HOST}:${PORT:-443}/mcp",
        "headers": {"Authorization": "Bearer ${TRIPS_TOKEN}"}},
    "old": {"type": "sse", "url": "${OLD_URL:-https://old.example.net}/sse"},
    "local": {"command": "${HOME}/bin/serve", "args": ["--root", "${CLAUDE_PROJECT_DIR}"],
        "env": {"MAPS_KEY": "${MAPS_KEY}", "MODE": "${MODE:-fast}"}, "timeout": 90000}
  }
}"""

CURSOR = """{
  "mcpServers": {
    "here": {"type": "stdio", "command": "python",
        "args": ["${workspaceFolder}${pathSeparator}tools.py", "${userHome}"],
        "env": {"KEY": "${env:MAPS_KEY}"}},
    "there": {"url": "https://api.example.net/mcp", "headers": {"X-Key": "${env:MAPS_KEY}"}}
  }
}"""

VSCODE = """{
  // what a person is asked for
  "inputs": [
    {"type": "promptString", "id": "trips-token", "description": "Token of the trips",
        "password": true},
    {"type": "pickString", "id": "region", "description": "Region", "options": ["eu", "us"],
        "default": "eu"},
  ],
  "servers": {
    "trips": {"type": "http", "url": "https://trips.example.net/${input:region}/mcp",
        "headers": {"Authorization": "Bearer ${input:trips-token}"}},
    "local": {"type": "stdio", "command": "node",
        "args": ["${workspaceFolder}/server.js", /* the name */ "${workspaceFolderBasename}"],
        "cwd": "${workspaceFolder}"}, // last
  },
}"""

VSCODE_SETTINGS = """{
  "editor.fontSize": 13,
  "mcp": {"inputs": [{"type": "promptString", "id": "k"}],
      "servers": {"one": {"command": "uvx", "args": ["one", "${input:k}"]}}}
}"""

CODEX = """
model = "gpt"

[mcp_servers.local]
command = "uvx"
args = ["maps-server"]
env_vars = ["TRIPS_TOKEN", { name = "PORT", source = "local" }]
cwd = "/srv/maps"
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["route", "find"]
disabled_tools = ["delete"]

[mcp_servers.local.env]
LEVEL = "info"

[mcp_servers."remote one"]
url = "https://maps.example.net/mcp"
bearer_token_env_var = "TRIPS_TOKEN"
http_headers = { "X-Region" = "eu" }
env_http_headers = { "X-Key" = "MAPS_KEY" }
startup_timeout_ms = 15000
enabled = false
"""

GOOSE = """
GOOSE_PROVIDER: anthropic
extensions:
  maps:
    enabled: true
    type: stdio
    name: maps
    description: Ways and places
    cmd: uvx
    args: [maps-server, --quiet]
    envs: {LEVEL: info, PORT: 8443}
    env_keys: [MAPS_KEY]
    timeout: 300
    bundled: false
    available_tools: [route]
  trips:
    enabled: false
    type: streamable_http
    uri: https://trips.example.net/mcp
    headers:
      Authorization: Bearer ${ TRIPS_TOKEN }
      X-Key: $MAPS_KEY
    available_tools: []
  ancient:
    type: sse
    uri: https://old.example.net/sse
"""

GEMINI = """{
  "theme": "dark",
  "mcpServers": {
    "local": {"command": "python", "args": ["-m", "maps", "--port", "$PORT"],
        "env": {"K": "$MAPS_KEY", "J": "${TRIPS_TOKEN}"}, "cwd": "./maps", "timeout": 15000,
        "trust": true, "includeTools": ["route"], "excludeTools": ["delete"]},
    "new": {"httpUrl": "http://127.0.0.1:3000/mcp"},
    "older": {"url": "http://127.0.0.1:3000/sse"},
    "said": {"url": "http://127.0.0.1:3000/mcp", "type": "http"}
  }
}"""

WINDSURF = """{
  "mcpServers": {
    "maps": {"serverUrl": "https://maps.example.net/mcp", "headers": {"X-Key": "${env:MAPS_KEY}"},
        "disabled": true, "disabledTools": ["delete"]}
  }
}"""

ZED = """{
  "vim_mode": true,
  "context_servers": {
    "maps": {"source": "custom", "command": "uvx", "args": ["maps-server", "${NOT_A_VARIABLE}"],
        "env": {"LEVEL": "info"}},
    "older": {"command": {"path": "/opt/maps", "args": ["-q"], "env": {"LEVEL": "info"}}},
    "remote": {"enabled": false, "url": "https://maps.example.net/mcp", "headers": {"X-Key": "k"}},
  },
}"""

OPENCODE = """{
  "$schema": "https://opencode.example/config.json",
  "mcp": {
    "maps": {"type": "local", "command": ["uvx", "maps-server", "${NOT_A_VARIABLE}"],
        "environment": {"KEY": "{env:MAPS_KEY}"}, "timeout": 20000},
    "remote": {"type": "remote", "url": "https://{env:API_HOST}/mcp", "enabled": false,
        "headers": {"X-Key": "{env:MAPS_KEY}{env:NOT_SET}"}},
  },
}"""

INTERLOCK = """{
  "mcpServers": {
    "mail": {"command": "interlock", "args": ["serve", "mail"], "trusted": true,
        "roots": ["Letters", "/srv/post"], "tools": ["draft*", "send"], "without": ["*_all"],
        "timeout": 30000, "startTimeout": 5000, "revision": "2025-06-18"},
    "socket": {"url": "unix:///run/user/1000/calendar.sock"},
    "wire": {"url": "tcp://127.0.0.1:8765"}
  }
}"""

# What each document comes to: the fields that are not as an Entry has them by itself.
CASES = {
    "claude-desktop": (
        CLAUDE_DESKTOP,
        [
            {
                "id": "files",
                "command": ("npx", "-y", "@example/files", "/home/ada/Documents"),
                "env": {"LEVEL": "info"},
            }
        ],
    ),
    "claude-code": (
        CLAUDE_CODE,
        [
            {
                "id": "trips",
                "url": "https://maps.example.net:8443/mcp",
                "headers": {"Authorization": "Bearer tok-8d1f77"},
            },
            {"id": "old", "url": "https://old.example.net/sse", "legacy_sse": True},
            {
                "id": "local",
                "command": ("/home/ada/bin/serve", "--root", "/srv/holiday"),
                "env": {"MAPS_KEY": "maps-5520c", "MODE": "fast"},
                "timeout": 90.0,
            },
        ],
    ),
    "cursor": (
        CURSOR,
        [
            {
                "id": "here",
                "command": ("python", "/srv/holiday/tools.py", "/home/ada"),
                "env": {"KEY": "maps-5520c"},
            },
            {
                "id": "there",
                "url": "https://api.example.net/mcp",
                "headers": {"X-Key": "maps-5520c"},
            },
        ],
    ),
    "vscode": (
        VSCODE,
        [
            {
                "id": "trips",
                "url": "https://trips.example.net/us/mcp",
                "headers": {"Authorization": "Bearer asked-for-1"},
            },
            {
                "id": "local",
                "command": ("node", "/srv/holiday/server.js", "holiday"),
                "cwd": "/srv/holiday",
            },
        ],
    ),
    "codex": (
        CODEX,
        [
            {
                "id": "local",
                "command": ("uvx", "maps-server"),
                "env": {"TRIPS_TOKEN": "tok-8d1f77", "PORT": "8443", "LEVEL": "info"},
                "cwd": "/srv/maps",
                "start_seconds": 20,
                "timeout": 45.5,
                "tools": ("route", "find"),
                "without": ("delete",),
            },
            {
                "id": "remote one",
                "url": "https://maps.example.net/mcp",
                "headers": {
                    "X-Region": "eu",
                    "X-Key": "maps-5520c",
                    "Authorization": "Bearer tok-8d1f77",
                },
                "start_seconds": 15.0,
                "disabled": True,
            },
        ],
    ),
    "goose": (
        GOOSE,
        [
            {
                "id": "maps",
                "command": ("uvx", "maps-server", "--quiet"),
                "env": {"LEVEL": "info", "PORT": "8443", "MAPS_KEY": "maps-5520c"},
                "timeout": 300,
                "tools": ("route",),
            },
            {
                "id": "trips",
                "url": "https://trips.example.net/mcp",
                "headers": {"Authorization": "Bearer tok-8d1f77", "X-Key": "maps-5520c"},
                "disabled": True,
            },
            {"id": "ancient", "url": "https://old.example.net/sse", "legacy_sse": True},
        ],
    ),
    "gemini": (
        GEMINI,
        [
            {
                "id": "local",
                "command": ("python", "-m", "maps", "--port", "8443"),
                "env": {"K": "maps-5520c", "J": "tok-8d1f77"},
                "cwd": "/srv/holiday/./maps",
                "timeout": 15.0,
                "trusted": True,
                "tools": ("route",),
                "without": ("delete",),
            },
            {"id": "new", "url": "http://127.0.0.1:3000/mcp"},
            {"id": "older", "url": "http://127.0.0.1:3000/sse", "legacy_sse": True},
            {"id": "said", "url": "http://127.0.0.1:3000/mcp"},
        ],
    ),
    "windsurf": (
        WINDSURF,
        [
            {
                "id": "maps",
                "url": "https://maps.example.net/mcp",
                "headers": {"X-Key": "maps-5520c"},
                "disabled": True,
                "without": ("delete",),
            }
        ],
    ),
    "opencode": (
        OPENCODE,
        [
            {
                "id": "maps",
                "command": ("uvx", "maps-server", "${NOT_A_VARIABLE}"),
                "env": {"KEY": "maps-5520c"},
                "start_seconds": 20.0,
            },
            {
                "id": "remote",
                "url": "https://maps.example.net/mcp",
                "headers": {"X-Key": "maps-5520c"},
                "disabled": True,
            },
        ],
    ),
    "zed": (
        ZED,
        [
            {
                "id": "maps",
                "command": ("uvx", "maps-server", "${NOT_A_VARIABLE}"),
                "env": {"LEVEL": "info"},
            },
            {"id": "older", "command": ("/opt/maps", "-q"), "env": {"LEVEL": "info"}},
            {
                "id": "remote",
                "url": "https://maps.example.net/mcp",
                "headers": {"X-Key": "k"},
                "disabled": True,
            },
        ],
    ),
    "mcpServers": (
        INTERLOCK,
        [
            {
                "id": "mail",
                "command": ("interlock", "serve", "mail"),
                "trusted": True,
                "roots": ("/srv/holiday/Letters", "/srv/post"),
                "tools": ("draft*", "send"),
                "without": ("*_all",),
                "timeout": 30.0,
                "start_seconds": 5.0,
                "revision": "2025-06-18",
            },
            {"id": "socket", "url": "unix:///run/user/1000/calendar.sock"},
            {"id": "wire", "url": "tcp://127.0.0.1:8765"},
        ],
    ),
}


def told(entry: Entry) -> dict[str, object]:
    """The fields of an entry that are not as they are by themselves, but for those about how it was
    written.
    """
    plain = Entry(id="")
    return {
        name: getattr(entry, name)
        for name in Entry.__struct_fields__
        if name not in ("source", "secrets", "origins")
        and getattr(entry, name) != getattr(plain, name)
    }


@pytest.mark.parametrize("named", [True, False], ids=["named", "found out"])
@pytest.mark.parametrize("product", CASES)
def test_documents_of_each_product(product: str, named: bool) -> None:
    """What each product documents is read, whether the format is named or found out; a whole
    document makes no problem.
    """
    text, wanted = CASES[product]
    config = read_config(
        text,
        format=product if named else None,
        env=ENV,
        inputs={"trips-token": "asked-for-1", "region": "us"},
        folder=FOLDER,
    )
    assert config.problems == ()
    assert [told(entry) for entry in config.entries] == wanted


def test_every_format_is_tried() -> None:
    """Who adds a format adds a document of it here."""
    assert set(CASES) == set(FORMATS)


def test_settings_of_vs_code() -> None:
    """Servers in the settings of VS Code stand one level deeper, with or without a dotted key."""
    config = read_config(VSCODE_SETTINGS, env={}, inputs={"k": "value-of-k"})
    assert [told(entry) for entry in config.entries] == [
        {"id": "one", "command": ("uvx", "one", "value-of-k")}
    ]
    dotted = read_config('{"mcp.servers": {"one": {"command": "uvx"}}}', env={})
    assert [entry.command for entry in dotted.entries] == [("uvx",)]


def test_projects_of_claude_code() -> None:
    """In `.claude.json` the servers of the folder that is worked in count beside those of the
    person, and no other folder's.
    """
    text = """{
      "mcpServers": {"mine": {"command": "a"}, "both": {"command": "b"}},
      "projects": {
        "/srv/holiday": {"allowedTools": [],
            "mcpServers": {"ours": {"command": "c"}, "both": {"command": "d"}}},
        "/srv/other": {"mcpServers": {"theirs": {"command": "e"}}}
      }
    }"""
    config = read_config(text, env={}, folder=FOLDER)
    assert [entry.id for entry in config.entries] == ["mine", "ours"]
    assert [(problem.id, problem.level) for problem in config.problems] == [("both", "error")]
    assert [entry.id for entry in read_config(text, env={}).entries] == ["mine", "both"]
    assert read_config('{"projects": {"/srv/other": {}}}', env={}, folder=FOLDER).problems == ()


@pytest.mark.parametrize(
    "name, text",
    [
        ("config.toml", "# nothing here yet\n[mcp_servers]\n"),
        ("config.yaml", "extensions: {}\n"),
        (".mcp.json", '{"mcpServers": {}}'),
        ("settings.json", '// empty\n{"context_servers": {},}'),
        ("", '\ufeff  \r\n{"servers": {}}'),
        ("", "[mcp_servers]"),
        ("", "# comment\nextensions:\n  {}"),
    ],
)
def test_empty_sections_are_fine(name: str, text: str) -> None:
    """A configuration with no servers in it is one; its syntax is told by the file's name or its
    beginning.
    """
    config = read_config(text, env={}, source=name)
    assert (config.entries, config.problems) == ((), ())


def test_unknown_format() -> None:
    """A format that there is not is a mistake of the program, not of the text."""
    with pytest.raises(
        ValueError, match="unknown format claude; known are mcpServers, claude-desktop"
    ):
        read_config("{}", format="claude", env={})


def test_targets() -> None:
    """What a client takes is all of the entry that it needs, and nothing that is empty."""
    local = Entry(id="a", command=("python", "-m", "x"), env={"K": "v"}, cwd="/srv")
    assert local.target == {
        "command": "python",
        "args": ["-m", "x"],
        "env": {"K": "v"},
        "cwd": "/srv",
    }
    assert Entry(id="a", command=("python",)).target == {"command": "python", "args": [], "env": {}}
    assert Entry(id="a", url="https://x/mcp", headers={"A": "b"}, legacy_sse=True).target == {
        "url": "https://x/mcp",
        "headers": {"A": "b"},
        "type": "sse",
    }
    assert Entry(id="a", url="tcp://h:1").target == {"url": "tcp://h:1"}


async def test_a_client_takes_the_target() -> None:
    """An entry that was read reaches a real server."""
    text = (
        '{"mcpServers": {"weather": {"command": "${PYTHON}", "args": ["-m", "interlock", '
        '"serve", "weather"]}}}'
    )
    (entry,) = read_config(text, env={"PYTHON": sys.executable}).entries
    async with Client(entry.target) as client:
        assert await client.list_tools()
