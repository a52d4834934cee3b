"""Command-line options that all commands of the host share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from msgspec import Struct, field

from interlock.redaction import Redactor

from ..fleet.log import BodyLimits
from ..fleet.log.anchors import EVERY
from ..host.loop.budget import Budget
from ..host.options import DISCOVERY

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
HOST_OPTIONS = (
    click.option(
        "--config",
        "-c",
        "configs",
        multiple=True,
        type=_FILE,
        metavar="FILE",
        help=(
            "Servers, in the format of any client; can be repeated.  [.mcp.json, or servers.json "
            "in your settings folder]"
        ),
    ),
    click.option(
        "--models",
        "models_file",
        type=_FILE,
        metavar="FILE",
        help="The configured models.  [models.json in your settings folder]",
    ),
    click.option(
        "--model",
        "-m",
        "models",
        multiple=True,
        metavar="NAME",
        help=(
            "A configured model, or PROVIDER:MODEL[@URL], such as anthropic:claude-sonnet-4-5 or "
            "openai:llama3@http://localhost:11434/v1. The first is used, the others can be chosen."
        ),
    ),
    click.option(
        "--policy",
        "policy_file",
        type=_FILE,
        metavar="FILE",
        help="Rules for tools: which may be called without asking, and which never.",
    ),
    click.option(
        "--trust", multiple=True, metavar="ID", help="Trust what this server says about its tools."
    ),
    click.option(
        "--project",
        metavar="NAME",
        help=(
            "The project of new conversations: one of the folder projects in your settings "
            "folder, or the file of a project."
        ),
    ),
    click.option(
        "--root",
        "roots",
        multiple=True,
        type=_FOLDER,
        metavar="FOLDER",
        help="A folder that all servers may work in (root).",
    ),
    click.option(
        "--lock",
        type=_NEW,
        metavar="FILE",
        help="Your approvals.  [interlock.lock beside the first --config]",
    ),
    click.option(
        "--steps",
        type=click.IntRange(1),
        metavar="N",
        help=f"How many times a turn may ask the model.  [{Budget().steps}]",
    ),
    click.option(
        "--discovery",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help=(
            "If the tool list takes more than this share of the model's context, the "
            f"model searches for tools instead.  [{DISCOVERY:g}]"
        ),
    ),
    click.option(
        "--log",
        "log_file",
        type=_NEW,
        metavar="FILE",
        help="The log of everything that happens.  [in your data folder]",
    ),
    click.option(
        "--log-required", is_flag=True, help="Call no tool while the log cannot be written."
    ),
    click.option(
        "--log-anchor",
        type=_NEW,
        metavar="FILE",
        help=(
            f"After each {EVERY} entries, add the log's head digest to this file. Keep it on "
            "another disk or machine."
        ),
    ),
    click.option(
        "--log-space",
        type=click.FloatRange(0),
        metavar="MB",
        help=(
            "Space for large results. The oldest are dropped; their entries stay.  "
            f"[{BodyLimits().total >> 20}]"
        ),
    ),
    click.option(
        "--log-days",
        type=click.FloatRange(0),
        metavar="DAYS",
        help=f"Days for which large results are kept; their entries stay.  [{BodyLimits().days:g}]",
    ),
    click.option(
        "--record",
        type=_NEW,
        metavar="FILE",
        help=(
            "Record all messages of the servers in this tape. If it exists, the recording is "
            "appended."
        ),
    ),
)


class HostCommandOptions(Struct, kw_only=True):
    """The options of a host command, and the inputs of its configuration.

    Attributes:
        answers: The values of the configuration's inputs, by id.
        secrets: Redacts these values.
        places: The configuration file of each server, by its id.
        paths: The configuration files, once they were looked up.
    """

    configs: tuple[Path, ...]
    models_file: Path | None
    models: tuple[str, ...]
    policy_file: Path | None
    trust: tuple[str, ...]
    roots: tuple[Path, ...]
    lock: Path | None
    log_file: Path | None
    log_required: bool = False
    log_anchor: Path | None = None
    log_space: float | None = None
    log_days: float | None = None
    record: Path | None = None
    steps: int | None = None
    discovery: float | None = None
    project: str | None = None
    answers: dict[str, str] = {}
    places: dict[str, Path] = {}
    paths: tuple[Path, ...] = ()
    secrets: Redactor = field(default_factory=Redactor)


def with_host_options(command: Any) -> Any:
    """Add the options of a host to a command."""
    for option in reversed(HOST_OPTIONS):
        command = option(command)
    return command


def given_of(options: dict[str, Any]) -> HostCommandOptions:
    """Take the options of the host out of a command's options."""
    return HostCommandOptions(
        **{
            name: options.pop(name)
            for name in HostCommandOptions.__struct_fields__
            if name in options
        }
    )
