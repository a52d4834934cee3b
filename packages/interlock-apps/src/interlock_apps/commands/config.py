"""`interlock config`: lists the servers of configuration files, checks and merges them."""

from __future__ import annotations

from pathlib import Path

import click

from interlock.cli import exits
from interlock.cli.screen import note, say
from interlock.configs import (
    PROJECT_FILES,
    Config,
    ConfigFile,
    Uneditable,
    load_config,
    write_config,
)

WORDS = """\b
Exit codes:
  0    every server can be used
  1    something cannot be used, or was not written
  2    wrong usage
"""


@click.command("config", epilog=WORDS)
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--write",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write them all into this file.",
)
def config(files: tuple[Path, ...], target: Path | None) -> None:
    """Show the servers in configuration FILES of any client, and what is wrong with them.

    It reads Claude Desktop, Claude Code, Cursor, VS Code, Codex, Goose, Gemini CLI, Windsurf and
    Zed. --write merges all of them into one file in the format of Claude Code's .mcp.json.
    Everything else in that file stays, and secrets are written as the ${VARIABLES} they came from.

    \b
    interlock config ~/.codex/config.toml .vscode/mcp.json
    interlock config ~/.codex/config.toml .vscode/mcp.json --write .mcp.json
    """
    paths = files or tuple(path for path in map(Path, PROJECT_FILES) if path.is_file())
    if not paths:
        raise click.UsageError(
            f"Name a configuration file. The working folder has none of {', '.join(PROJECT_FILES)}."
        )
    found = load_config(*paths)
    _show(found)
    if target is not None:
        _write(found, target)
    if any(problem.level == "error" for problem in found.problems):
        click.get_current_context().exit(exits.TOOL_FAILED)


def _show(found: Config) -> None:
    for entry in found.entries:
        marks = [
            word for word, is_so in (("off", entry.disabled), ("trusted", entry.trusted)) if is_so
        ]
        if entry.revision:
            marks.append(f"speaks only {entry.revision}")
        say(f"{entry.id} ({', '.join(marks)})" if marks else entry.id, bold=True)
        say(f"  {entry.shown}")
        for variable in entry.shown_env:
            say(f"  {variable}", dim=True)
        say(f"  from {entry.source}", dim=True)
    for problem in found.problems:
        note(str(problem), fg="red" if problem.level == "error" else "yellow")


def _write(found: Config, target: Path) -> None:
    """Write the servers to a file, which is replaced atomically."""
    try:
        _, copy = ConfigFile(target).make(lambda before: write_config(found.entries, before or ""))
    except (OSError, Uneditable) as bad:
        raise click.ClickException(f"{target} was not changed: {bad}") from None
    kept = f" The previous version is in {copy.name}." if copy is not None else ""
    note(f"{len(found.entries)} servers in {target}.{kept}")
