"""Writes the quickstart of each host, from the table of products and what a user does in each.

python -m scripts.site.quickstarts    # write docs/quickstart/*.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from interlock.configs import PRODUCTS, Machine, Product
from interlock.doctor.gather.host_logs import LOG_PLACES

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "quickstart"

DEBUGGING: Final = FOLDER.parent / "cookbook" / "debugging.md"
BEGIN: Final = "|---|---|---|\n"
END: Final = "\nOn macOS and Windows the logs are elsewhere"

_NEEDS_INSTALL = ("codex", "goose")  # their files are TOML and YAML
_RUN_BY_TESTS = ("codex", "gemini", "opencode")


class Usage(NamedTuple):
    """What a user does in a host, once the server is installed.

    Attributes:
        steps: The steps, in order.
        change: How the host notices a changed entry.
        remote: How a server at a URL is added where the host's file cannot have one.
    """

    steps: tuple[str, ...]
    change: str
    remote: str = ""


USAGE: Final = {
    "claude-desktop": Usage(
        (
            "Quit Claude Desktop from its menu, not only its window, and open it again.",
            "Open a new conversation. The tools of the server are in the menu below the message.",
            "Write: *Greet Ada with the hello tool.* Allow the call.",
        ),
        "Claude Desktop reads its file when it starts.",
        "Open **Settings**, then **Connectors**, and add the URL there. Claude connects to it from "
        "its own servers, so the URL must be reachable from the internet.",
    ),
    "claude-code": Usage(
        (
            "Start `claude` in any folder. `claude mcp list` shows `hello` as connected.",
            "Write: *Greet Ada with the hello tool.* Allow the call.",
            "`/mcp` shows the servers of the session and their tools.",
        ),
        "Claude Code reads its file when a session starts.",
    ),
    "cursor": Usage(
        (
            "Open the settings of Cursor, and there the page of MCP servers. `hello` has a green "
            "dot and one tool.",
            "Open the agent and write: *Greet Ada with the hello tool.* Run the call.",
        ),
        "Cursor notices a change of the file; the switch of the server restarts it.",
    ),
    "vscode": Usage(
        (
            "Run the command **MCP: List Servers** from the command palette, choose `hello`, and "
            "start it.",
            "Open the chat in agent mode and write: *Greet Ada with the hello tool.* Continue when "
            "it asks.",
        ),
        "VS Code notices a change of the file, and shows an action above the entry.",
    ),
    "codex": Usage(
        (
            "`codex mcp list` shows `hello` with its command.",
            "Start `codex` and write: *Greet Ada with the hello tool.*",
            "`/mcp` shows the servers of the session and their tools.",
        ),
        "Codex reads its file when a session starts.",
    ),
    "gemini": Usage(
        (
            "Start `gemini` in a folder, and trust the folder when it asks: in other folders it "
            "starts no servers.",
            "`gemini mcp list`, in that folder, shows `hello` as connected.",
            "In `gemini`, write: *Greet Ada with the hello tool.* Allow the call.",
            "`/mcp` shows the servers of the session and their tools.",
        ),
        "Gemini CLI reads its file when a session starts.",
    ),
    "goose": Usage(
        (
            "Start `goose session`, or the desktop program. `hello` is among its extensions.",
            "Write: *Greet Ada with the hello tool.*",
        ),
        "Goose reads its file when a session starts.",
    ),
    "opencode": Usage(
        (
            "`opencode mcp list` shows `hello` as connected.",
            "Start `opencode` and write: *Greet Ada with the hello tool.*",
        ),
        "opencode reads its file when it starts.",
    ),
    "windsurf": Usage(
        (
            "Open Cascade, and there the list of MCP servers. Refresh it: `hello` has one tool.",
            "Write: *Greet Ada with the hello tool.* Allow the call.",
        ),
        "Windsurf reads its file when you refresh the list of servers.",
    ),
    "zed": Usage(
        (
            "Open the settings of the agent panel. `hello` has a green dot.",
            "Write in the agent panel: *Greet Ada with the hello tool.* Allow the call.",
        ),
        "Zed notices a change of the file, and restarts the server.",
    ),
}

_PAGE = """# Quickstart: {title}

From an empty folder to your own tool in {title}. You need Python 3.11 or newer.

## Install Interlock

```console
$ pip install {package}
```

## Write a server

```python
# hello.py
from interlock import Server, ToolAnnotations

server = Server("hello")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def greet(name: str) -> str:
    \"\"\"Greet somebody.

    Args:
        name: The name of the person.
    \"\"\"
    return f"Hello, {{name}}!"
```

Try it before {title} does:

```console
$ interlock call hello.py greet name=Ada
Hello, Ada!
```

## Install it in {title}

```console
$ interlock install hello.py --client {key}
{title} has hello
  in: ...{file}
  it will run: ... run ...hello.py
```

The command starts the server once, with the few variables that {title} passes to it. Then it
writes one entry into the file of {title}. Every other byte of the file stays as it is, and a
backup is kept beside it. `--dry-run` only shows the change, and `--env API_KEY=...` gives the
server a variable.

| system | file |
|---|---|
{files}

## Use it

{tested}

{steps}

{change}

While you write the server, install the command `interlock run /path/to/hello.py --dev` instead of
the file: {title} then always has the newest version of the file, and a tool that fails says why.

```console
$ interlock install --client {key} --name hello --force --dry-run -- interlock run hello.py --dev
...
```

## When it does not work

```console
$ interlock doctor {key}
...
Nothing is wrong.
```

`interlock doctor {key}` reads the same file, starts each server as {title} does, and says what is
wrong and what to do. {log}

## A server at a URL

{remote}

## Remove it

```console
$ interlock install hello.py --client {key} --remove
{title} no longer has hello
...
```

Next: [the tutorial](../tutorial.md), and [more about tools](../guide/tools.md).
"""

_SYSTEMS = {"Linux": "linux", "macOS": "darwin", "Windows": "win32"}


def page(key: str) -> str:
    """Return the quickstart of a host."""
    product, usage = PRODUCTS[key], USAGE[key]
    title = product.title
    linux = product.path(_machine("linux"))
    return _PAGE.format(
        key=key,
        title=title,
        package="'interlock[install]'" if key in _NEEDS_INSTALL else "interlock",
        file=linux.as_posix().removeprefix("~/"),
        files="\n".join(
            f"| {system} | `{_shown(product.path(_machine(platform)), platform)}` |"
            for system, platform in _SYSTEMS.items()
        ),
        tested=(
            f"Our tests run {title} itself with a server that was installed like this."
            if key in _RUN_BY_TESTS
            else f"*These steps happen inside {title}: our tests do not run them.*"
        ),
        steps="\n".join(f"{number}. {step}" for number, step in enumerate(usage.steps, 1)),
        change=usage.change,
        log=_log(key, title),
        remote=_remote(key, product, usage),
    )


def _machine(platform: str) -> Machine:
    """A machine without files, whose home folder is written as users write it."""
    return Machine(platform, Path("~"), {"APPDATA": "%APPDATA%", "LOCALAPPDATA": "%LOCALAPPDATA%"})


def _shown(path: Path, platform: str) -> str:
    """A path as it is written on a system."""
    text = path.as_posix()
    return text.replace("~", "%USERPROFILE%").replace("/", "\\") if platform == "win32" else text


def _log(key: str, title: str) -> str:
    place = LOG_PLACES.get(key)
    if place is None:
        return f"{title} keeps no log of its servers."
    pattern = place.patterns(_machine("linux"))[0].replace("{name}", "hello")
    return (
        f"It quotes the last errors from the log of {title}, which is `{pattern}` on Linux. What a "
        "server\nprints goes to standard error, and so into that log."
    )


def _remote(key: str, product: Product, usage: Usage) -> str:
    if product.remote is None:
        return usage.remote
    return (
        f"`interlock install https://tools.example.com/mcp --client {key}` writes an entry for a "
        "server at a URL.\n`--header 'Authorization: Bearer ...'` adds a header. A server that "
        "needs a [login](../guide/auth.md) needs no header: the host\nopens the browser."
    )


def logs() -> str:
    """Return the rows of a table with the log of each host."""
    rows = []
    for key, product in PRODUCTS.items():
        place = LOG_PLACES.get(key)
        patterns = place.patterns(_machine("linux")) if place is not None else ()
        log = ", ".join(f"`{pattern.replace('{name}', 'clock')}`" for pattern in patterns)
        more = "one log for all servers" if place is not None and place.is_shared else ""
        rows.append(f"| [{product.title}](../quickstart/{key}.md) | {log or 'none'} | {more} |\n")
    return "".join(rows)


def with_logs(text: str) -> str:
    """Return the page on debugging with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{logs()}{END}{rest.partition(END)[2]}"


def main() -> None:
    """Write every page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for key in PRODUCTS:
        (FOLDER / f"{key}.md").write_text(page(key), encoding="utf-8")
    DEBUGGING.write_text(with_logs(DEBUGGING.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
