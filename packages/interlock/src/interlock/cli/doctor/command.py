"""`interlock doctor`: examine a server, or the servers and logs of an installed host."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
from msgspec.structs import replace

from ...configs import PRODUCTS, Entry
from ...doctor import (
    DiagnosticReport,
    ExamineOptions,
    examine,
    examine_host,
    installed_hosts,
)
from ...http11.fetch import Authorizer
from ...wire.revisions import REVISIONS
from ..targets.reach import environment_of, local_command, web_options
from ..targets.trailing_command import COMMAND, TargetCommand
from .page import ReportPage, conclude

_DEFAULTS: Final = ExamineOptions()


class DoctorCommand(TargetCommand):
    """A command that examines all installed hosts without arguments."""

    needs_words = False


@click.command("doctor", cls=DoctorCommand)
@click.argument("words", nargs=-1, metavar="[HOST | TARGET]")
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The configuration file of a client or project.",
)
@click.option("--server", "entry", metavar="NAME", help="The server in the configuration.")
@click.option(
    "--trust", is_flag=True, help="Start the server of a configuration once, without asking."
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="An environment variable for the server; without VALUE, your own value.",
)
@click.option(
    "--inherit-env",
    is_flag=True,
    help="Give the server all your environment variables, including secrets.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="https: a header for each request; $NAME is filled in.",
)
@click.option(
    "--account",
    default="",
    metavar="NAME",
    help="https: the account, if you logged in with several (`interlock auth`).",
)
@click.option(
    "--private-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="https: allow this host of the authorization server to have a private address.",
)
@click.option(
    "--ca",
    type=click.Path(path_type=Path, exists=True),
    help="https: the certificate authorities to trust, a file or a folder.",
)
@click.option(
    "--keep-alive",
    type=click.FloatRange(0, 3_600),
    default=_DEFAULTS.keep_alive_seconds,
    show_default=True,
    metavar="SECONDS",
    help="https: how long the event stream is watched. 65 finds streams that proxies cut.",
)
@click.option("--revision", metavar="DATE", help=f"Use this revision only: {', '.join(REVISIONS)}.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=_DEFAULTS.timeout,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the first answer, and for each request.",
)
@click.option(
    "--no-start", is_flag=True, help="Read configurations, files and logs; start nothing."
)
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option("--json", "machine", is_flag=True, help="Write JSON for programs.")
def doctor(
    words: Sequence[str],
    config: Path | None,
    entry: str | None,
    trust: bool,
    variables: Sequence[str],
    inherit_env: bool,
    headers: Sequence[str],
    account: str,
    hosts: tuple[str, ...],
    ca: Path | None,
    keep_alive: float,
    revision: str | None,
    timeout: float,
    no_start: bool,
    strict: bool,
    machine: bool,
) -> None:
    """Find out what is wrong with a server, and what to do about it.

    HOST is an installed product: claude-desktop, claude-code, cursor, vscode, codex, gemini, goose,
    opencode, windsurf or zed. Its configuration and its logs are read, and each of its servers is
    started as the product starts it. Without an argument, all products are examined that are found
    here.

    TARGET is a server: a Python or JavaScript file, https://host/path, unix:///path,
    tcp://host:port, an entry of a configuration (--config, --server), or a command after --.

    The parts are checked in order: the command, the start, the network, HTTP, the authorization,
    the connection, and what the server lists (`interlock lint` checks the lists alone). Tools are
    not called.

    The exit code is 0 if there are no errors, and 1 otherwise.

    \b
    interlock doctor
    interlock doctor claude-desktop
    interlock doctor https://mcp.example.com/mcp --keep-alive 65
    interlock doctor -- uvx mcp-server-git
    """
    if revision is not None and revision not in REVISIONS:
        raise click.UsageError(f"Unknown revision {revision}; known are {', '.join(REVISIONS)}.")
    if len(words) > 1:
        raise click.UsageError(f"Got unexpected words: {' '.join(words[1:])}")
    environment = environment_of(variables, inherit_env)
    headers_given: Mapping[str, str] = web_options(headers, False).get("headers", {})
    options = ExamineOptions(
        start=not no_start,
        timeout=timeout,
        keep_alive_seconds=keep_alive,
        env=environment.named,
        inherit_env=environment.whole,
        headers=headers_given,
        auth=_stored_logins(account, headers_given),
        private_hosts=hosts,
        ca=ca,
        revision=revision,
    )
    command: list[str] | None = click.get_current_context().meta.get(COMMAND)
    named = [words, command, config or entry]
    if sum(bool(one) for one in named) > 1:
        raise click.UsageError(
            "Name one target: HOST, TARGET, --config and --server, or -- COMMAND."
        )
    target: str | list[str] | Entry | None = command
    if config is not None or entry is not None:
        target = _entry(config, entry, trust, start=not no_start)
    elif trust:
        raise click.UsageError("--trust is for --config and --server.")
    elif words and words[0] not in PRODUCTS:
        target, options = _located(words[0], options)
    products = () if target is not None else (tuple(words) or installed_hosts())
    if target is None and not products:
        raise click.UsageError("No configuration of a known product was found here. Name a TARGET.")
    page = None if machine else ReportPage()
    reports = asyncio.run(_examine(target, products, options, page))
    code = conclude(reports, machine=machine, strict=strict)
    if code:
        click.get_current_context().exit(code)


async def _examine(
    target: str | list[str] | Entry | None,
    products: Sequence[str],
    options: ExamineOptions,
    page: ReportPage | None,
) -> list[DiagnosticReport]:
    """Examine the target, or else the products, and show the parts as they are checked."""
    show = None if page is None else page.show
    begin = None if page is None else page.begin
    if target is not None:
        return [await examine(target, options, on_part=show, on_report=begin)]
    return [
        await examine_host(product, options, on_part=show, on_report=begin) for product in products
    ]


def _located(text: str, options: ExamineOptions) -> tuple[str | list[str], ExamineOptions]:
    """The URL, or the command of a file, with the options for it. Raises click.UsageError."""
    if "://" in text:
        if options.env or options.inherit_env:
            raise click.UsageError(
                "--env and --inherit-env are for servers that are started, not for a URL."
            )
        return text, options
    command, is_own = local_command(text)
    return command, replace(options, inherit_env=options.inherit_env or is_own)


def _entry(config: Path | None, name: str | None, trust: bool, *, start: bool) -> Entry:
    """The entry of a configuration, once the user allowed it. Raises click.UsageError."""
    from ..targets.configured import allowed_entry  # imported late: few targets are configured

    return allowed_entry(config, name, trust=trust or not start)


def _stored_logins(account: str, headers: Mapping[str, str]) -> Authorizer | None:
    if any(name.lower() == "authorization" for name in headers):
        return None
    from ..auth.saved_logins import KeptTokens  # imported late: only needed for servers at URLs

    return KeptTokens(account)
