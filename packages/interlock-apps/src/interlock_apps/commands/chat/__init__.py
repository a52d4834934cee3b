"""`interlock chat`: a terminal interface (REPL) for talking with a model that uses servers."""

from __future__ import annotations

import sys
from typing import Any

import click

from ...host.app import Host
from ..host_factory import follow, host_of
from ..options import given_of, with_host_options

MISSING = "The chat needs prompt_toolkit and rich: pip install 'interlock[host]'"


@click.command("chat")
@with_host_options
@click.option(
    "--resume", metavar="SESSION", help="Continue an earlier conversation; /sessions lists them."
)
def chat(resume: str | None, **options: Any) -> None:
    """Use a model with servers, in the terminal.

    Type, and press Enter. / shows the prompts of all servers, @ their resources, /help the rest. If
    a server or the model needs a decision, you are asked here and answer with one key. Ctrl-C
    cancels the running turn, Ctrl-D quits.

    \b
    interlock chat --config .mcp.json --model anthropic:claude-sonnet-4-5
    interlock chat -c servers.json -m openai:llama3@http://localhost:11434/v1
    """
    need_terminal()
    given = given_of(options)
    host = host_of(given)
    run_chat(host, resume=resume or "", follow=lambda: follow(host, given))


def run_chat(host: Host, *, hint: str = "", resume: str = "", follow: Any = None) -> None:
    """Run the chat in the terminal until the person quits.

    `host` is not open yet; it is closed when this returns. `hint` is shown at the start, `resume`
    names an earlier conversation, and `follow` returns a coroutine that runs beside the chat.
    Raises click.ClickException, or click.UsageError without a terminal.
    """
    need_terminal()
    try:
        from .repl import begin  # late: prompt_toolkit and rich, optional extra `host`
    except ImportError as missing:
        if (missing.name or "").partition(".")[0] not in ("prompt_toolkit", "rich"):
            raise
        raise click.ClickException(MISSING) from None
    begin(host, hint=hint, resume=resume, follow=follow)


def need_terminal() -> None:
    """Raise click.UsageError unless stdin and stdout are a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            'The chat needs a terminal. `interlock ask "..."` answers one question without one.'
        )
