"""The program `interlock`: its options, its help page, and the table of its commands."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any, Final, NoReturn

import click

from ..untrusted.invisible import visible
from ..version import VERSION
from . import exits
from .groups import LazyGroup, Row

_TALK = "Talk to a server"
_MAKE = "Run and write servers"
_HOST = "Use servers with a model"

COMMANDS: Final[dict[str, Row]] = {
    "run": Row("Run the server in a Python file.", _MAKE, "interlock.cli.run.running:run"),
    "openapi": Row(
        "Serve the operations of an OpenAPI document as tools.",
        _MAKE,
        "interlock.cli.openapi:openapi",
    ),
    "bridge": Row(
        "Reach a server over another transport or revision.",
        _MAKE,
        "interlock.cli.bridge:bridge",
    ),
    "new": Row(
        "Create a small project with a server and its test.", _MAKE, "interlock.cli.new.command:new"
    ),
    "install": Row(
        "Add a server to the configuration of a client.",
        _MAKE,
        "interlock.cli.install.command:install",
    ),
    "migrate": Row(
        "Rewrite a server from another SDK, and prove that it does the same.",
        _MAKE,
        "interlock.cli.migrate.command:migrate",
    ),
    "publish": Row(
        "Publish a server in the MCP registry.", _MAKE, "interlock.cli.registry.publish:publish"
    ),
    "search": Row(
        "Find servers in the MCP registry.", _HOST, "interlock.cli.registry.search:search"
    ),
    "add": Row(
        "Add a server of the MCP registry to a configuration.",
        _HOST,
        "interlock.cli.registry.add:add",
    ),
    "admin": Row(
        "See and end the sessions and calls of a running server.",
        _MAKE,
        "interlock.cli.admin.group:admin",
    ),
    "top": Row("Watch a running server.", _MAKE, "interlock.cli.admin.top:top"),
    "data": Row("Back up, restore and check data files.", _MAKE, "interlock.cli.data.group:data"),
    "serve": Row("Run one of the servers of Interlock.", _MAKE, extra="servers"),
    "tour": Row("Watch the protocol at work.", _MAKE, extra="servers"),
    "gateway": Row("Serve many servers at one endpoint.", _HOST, extra="gateway"),
    "demo": Row("Plan a holiday: a host with four servers, in the browser.", _HOST, extra="demo"),
    "host": Row("Use a model with servers, in the browser.", _HOST, extra="host"),
    "chat": Row("Use a model with servers, in the terminal.", _HOST, extra="host"),
    "config": Row("Show, check and merge the configurations of clients.", _HOST, extra="host"),
    "log": Row("Search the log of the host.", _HOST, extra="host"),
    "ask": Row("Ask one question in a script: a policy answers for you.", _HOST, extra="host"),
    "list": Row("Show what a server offers.", _TALK, "interlock.cli.client.listing:list_"),
    "schema": Row("Print the JSON Schemas of tools.", _TALK, "interlock.cli.client.listing:schema"),
    "call": Row("Call a tool.", _TALK, "interlock.cli.client.calling:call"),
    "read": Row("Read a resource.", _TALK, "interlock.cli.client.reading:read"),
    "prompt": Row(
        "Get a prompt with its arguments filled in.", _TALK, "interlock.cli.client.prompting:prompt"
    ),
    "complete": Row(
        "Get suggestions for an argument.", _TALK, "interlock.cli.client.prompting:complete"
    ),
    "load": Row(
        "Call a tool again and again, and measure how long the calls take.",
        _TALK,
        "interlock.cli.client.load_testing:load",
    ),
    "diff": Row(
        "Compare what two servers offer, or one at two revisions.",
        _TALK,
        "interlock.cli.client.comparing:diff",
    ),
    "tasks": Row(
        "Show, cancel and await calls that a server finishes later.",
        _TALK,
        "interlock.cli.client.tasks:tasks",
    ),
    "inspect": Row("Look into servers and recordings, in the browser.", _TALK, extra="inspector"),
    "ping": Row("Check that a server answers.", _TALK, "interlock.cli.client.listing:ping"),
    "doctor": Row(
        "Find out what is wrong with a server or a host.",
        _TALK,
        "interlock.cli.doctor.command:doctor",
    ),
    "lint": Row(
        "Check the tools, resources and prompts that a server lists.",
        _TALK,
        "interlock.cli.doctor.lint:lint",
    ),
    "record": Row(
        "Record what a host and a server send each other.",
        _TALK,
        "interlock.cli.tapes.record:record",
    ),
    "test": Row(
        "Test a server with a suite in TOML, or with a recording.",
        _TALK,
        "interlock.cli.tapes.test:test",
    ),
    "replay": Row(
        "Replay a recording as a mock server, or compare a server with it.",
        _TALK,
        "interlock.cli.tapes.replay:replay",
    ),
    "auth": Row(
        "Log in to servers, and see why a login fails.", _TALK, "interlock.cli.auth.group:auth"
    ),
}


class Program(LazyGroup):
    """The command itself."""

    rows = COMMANDS

    def main(self, *args: Any, standalone_mode: bool = True, **options: Any) -> Any:
        """Run the command, and exit with an exit code of this program. An interrupt exits with
        130.
        """
        run: Any = super().main
        if not standalone_mode:
            return run(*args, standalone_mode=False, **options)
        try:
            code = run(*args, standalone_mode=False, **options)
        except click.ClickException as bad:
            words = io.StringIO()
            bad.show(words)
            click.echo(visible(words.getvalue()), nl=False, err=True)  # it may quote untrusted text
            _exit(bad.exit_code)
        except click.Abort:
            click.echo("Interrupted.", err=True)
            _exit(exits.INTERRUPTED)
        _exit(code if isinstance(code, int) else exits.OK)


def _exit(code: int) -> NoReturn:
    """Exit. A closed pipe at the other end of stdout is not an error."""
    try:
        sys.stdout.flush()
    except OSError as bad:
        if bad.errno != errno.EPIPE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes it again at exit
    sys.exit(code)


@click.command(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=exits.WORDS,
    no_args_is_help=True,
)
@click.version_option(VERSION, "--version", prog_name="interlock", message="%(prog)s %(version)s")
def program() -> None:
    """Write, run and test servers of the Model Context Protocol.

    \b
    interlock new hello && cd hello      a server of ten lines, with a test
    interlock call server.py greet name=Ada
    interlock call greet name=Ada -- uv run server.py
    interlock run server.py --http :8000 --workers 4
    interlock install server.py --client claude-desktop
    """
