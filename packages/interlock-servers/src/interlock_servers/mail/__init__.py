"""Mail server: drafts and sends mail by SMTP, or into a local Maildir.

`interlock serve mail` runs it. INTERLOCK_SMTP_HOST, _PORT, _USER, _PASSWORD and _TLS (starttls, tls
or none) set the SMTP server, INTERLOCK_MAIL_FROM the sender, and INTERLOCK_MAIL_FOLDER the Maildir
for drafts and sent messages.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import date
from email.message import EmailMessage
from email.parser import BytesParser
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from interlock import (
    Context,
    McpError,
    Server,
    ServerInfo,
    ToolAnnotations,
    ToolError,
    ToolResult,
    types,
)

from .maildir import MOST_SEARCHED, Box, Maildir
from .messages import MOST_RECIPIENTS, MOST_SUBJECT, ON_THE_WIRE, MailMessage, addresses, written
from .smtp import HOST, SmtpSender

Id = Annotated[str, Meta(min_length=1, max_length=300)]
Count = Annotated[int, Meta(ge=1, le=100)]
MOST_FOUND = 50
SENT = "mail://sent/{id}"
DRAFTS = "mail://drafts/{id}"

_ADDRESS = {"type": "string", "minLength": 1, "maxLength": 20_000}
_WHOM = {"anyOf": [_ADDRESS, {"type": "array", "items": _ADDRESS, "maxItems": MOST_RECIPIENTS}]}
# `from` cannot be the name of a Python parameter, so the schema is written by hand.
_LETTER = {
    "type": "object",
    "properties": {
        "to": {**_WHOM, "description": "one address or several, such as ann@example.com"},
        "subject": {
            "type": "string",
            "maxLength": MOST_SUBJECT,
            "description": "the subject, one line",
        },
        "body": {"type": "string", "description": "the text"},
        "cc": {**_WHOM, "description": "recipients of a copy"},
        "from": {**_ADDRESS, "description": "the sender, if it can be chosen"},
    },
    "required": ["to", "subject", "body"],
    "additionalProperties": False,
}


class SendResult(Struct, rename={"sender": "from"}):
    """What became of a letter: `how` is `smtp` where it went out, and `local` where it was only put
    into the local Maildir.

    `refused` are those whom the server did not send it to, and why. `uri` is empty where no copy
    could be kept.
    """

    id: str
    uri: str
    how: Literal["smtp", "local"]
    sender: str
    to: list[str]
    subject: str
    refused: dict[str, str] = field(default_factory=dict)


class MailList(Struct):
    """Messages, newest first. `complete` is false if there are more."""

    letters: list[MailMessage]
    complete: bool


class Mailer(Struct, frozen=True):
    """The dependencies of the tools: the Maildir and the SMTP sender."""

    boxes: Maildir
    post: SmtpSender | None  # None: from the environment

    def the_post(self) -> SmtpSender:
        """The current SMTP sender. Raises ToolError for invalid settings in the environment."""
        return self.post or SmtpSender.from_environment()


def mail_server(
    folder: str | os.PathLike[str] | None = None, post: SmtpSender | None = None
) -> Server:
    """Return a server for the Maildir at `folder` that sends by `post`; both default to the
    environment.
    """
    mailer = Mailer(Maildir(folder), post)

    @asynccontextmanager
    async def lifespan(_: Server) -> AsyncIterator[Mailer]:
        yield mailer

    made = Server(
        "mail",
        "1.0.0",
        info=ServerInfo(title="Mail", description="Write, store and send mail."),
        instructions=(
            "send_mail says whether a message was sent or only stored in the local "
            "Maildir; tell the user which."
        ),
        lifespan=lifespan,
    )
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    keeps = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False
    )
    sends = ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
    )
    sends_draft = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=True
    )
    discards = ToolAnnotations(
        read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
    )
    made.add_tool(
        send_mail, title="Send a mail", annotations=sends, input_schema=_LETTER, timeout=300.0
    )
    made.add_tool(create_draft, title="Write a draft", annotations=keeps, input_schema=_LETTER)
    made.add_tool(list_drafts, title="List the drafts", annotations=reads)
    made.add_tool(send_draft, title="Send a draft", annotations=sends_draft, timeout=300.0)
    made.add_tool(discard_draft, title="Discard a draft", annotations=discards)
    made.add_tool(list_sent, title="List what was sent", annotations=reads)
    made.add_tool(search_mail, title="Search the mail", annotations=reads, timeout=60.0)
    made.add_prompt(out_of_office, name="out-of-office", title="Out of office")
    _add_reading(made, mailer)
    return made


# -- the tools: plain functions, because SMTP and the disk take time -------------------------------


def send_mail(arguments: dict[str, Any], ctx: Context[Mailer]) -> ToolResult[SendResult]:
    """Send a letter.

    Without an SMTP server it is only put into the local Maildir; the result says which.
    """
    post = ctx.lifespan_state.the_post()
    return _sent(ctx, post, _written(arguments, post))


def create_draft(arguments: dict[str, Any], ctx: Context[Mailer]) -> ToolResult[MailMessage]:
    """Keep a letter as a draft, to be sent later or not."""
    letter = ctx.lifespan_state.boxes.put(
        "drafts", _written(arguments, ctx.lifespan_state.the_post())
    )
    ctx.updated(letter.uri)
    return ToolResult(letter, f"Stored as a draft, not sent: {_line(letter)}")


def list_drafts(ctx: Context[Mailer], limit: Count = 20) -> ToolResult[MailList]:
    """The drafts, the latest first.

    Args:
        limit: at most how many.
    """
    return _listed(ctx.lifespan_state.boxes, "drafts", limit, "There are no drafts.")


def send_draft(draft: Id, ctx: Context[Mailer]) -> ToolResult[SendResult]:
    """Send a draft; it is then a draft no longer.

    Args:
        draft: its id.
    """
    post = ctx.lifespan_state.the_post()
    boxes = ctx.lifespan_state.boxes
    with boxes.claimed(draft) as data:
        if data is None:
            raise ToolError(_no_draft(draft))
        kept: Any = BytesParser(policy=ON_THE_WIRE).parsebytes(data)
        _check(kept, post)
        answer = _sent(ctx, post, kept)
        with suppress(KeyError):  # another program may have removed it in the meantime
            boxes.remove("drafts", draft)
    ctx.updated(f"mail://drafts/{quote(draft, safe='')}")
    return answer


def discard_draft(draft: Id, ctx: Context[Mailer]) -> ToolResult[MailMessage]:
    """Throw a draft away, for good.

    Args:
        draft: its id.
    """
    boxes = ctx.lifespan_state.boxes
    with boxes.claimed(draft) as data:
        letter = boxes.get("drafts", draft) if data is not None else None
        if letter is None:
            raise ToolError(_no_draft(draft))
        boxes.remove("drafts", draft)
    ctx.updated(letter.uri)
    return ToolResult(letter, f"Discarded: {_line(letter)}")


def list_sent(ctx: Context[Mailer], limit: Count = 20) -> ToolResult[MailList]:
    """What was sent, the latest first, and how: by smtp, or into the local Maildir only.

    Args:
        limit: at most how many.
    """
    return _listed(ctx.lifespan_state.boxes, "sent", limit, "Nothing was sent yet.")


def search_mail(
    words: Annotated[str, Meta(min_length=1, max_length=200)], ctx: Context[Mailer]
) -> ToolResult[MailList]:
    """The drafts and sent letters that hold all of some words: in their text, subject, or
    addresses.

    Args:
        words: one or more, whatever their case.
    """
    wanted = words.casefold().split()
    found: list[MailMessage] = []
    seen = 0
    boxes: tuple[Box, ...] = ("drafts", "sent")
    for box in boxes:
        for letter in ctx.lifespan_state.boxes.letters(box, whole=True):
            if seen >= MOST_SEARCHED or len(found) > MOST_FOUND or ctx.cancelled:
                break
            seen += 1
            if seen % 100 == 0:
                ctx.progress(seen, None, f"{seen} letters")
            text = "\n".join(
                [letter.subject, letter.sender, *letter.to, *letter.cc, letter.body]
            ).casefold()
            if all(word in text for word in wanted):
                found.append(replace(letter, body=""))
    complete = len(found) <= MOST_FOUND and seen < MOST_SEARCHED
    return _letters(found[:MOST_FOUND], complete, f"No message contains {words}.")


def out_of_office(
    first_day: date, last_day: date, colleague: str = "", language: str = "English"
) -> str:
    """Write a reply for the days on which one is away.

    Args:
        first_day: the first day away, such as 2024-06-15
        last_day: the last day away
        colleague: who helps meanwhile, by name or address
        language: the language to write in
    """
    if last_day < first_day:
        raise McpError(types.INVALID_PARAMS, f"last_day: {last_day} is before {first_day}")
    helper = (
        f"Say that {colleague} helps meanwhile. "
        if colleague
        else "Nobody covers for me; say that answers will take until then. "
    )
    return (
        f"Write a short, friendly out-of-office letter in {language}. I am away from "
        f"{first_day:%d %B %Y} to {last_day:%d %B %Y}, both included, and read no mail. "
        f"{helper}Do not say where I am or why. Show me the letter, ask me for the "
        "recipients, and store it with create_draft; send it only when I say so."
    )


# -- shared helpers --------------------------------------------------------------------------------


def _written(arguments: dict[str, Any], post: SmtpSender) -> EmailMessage:
    whom: str | Sequence[str] = arguments["to"]
    sender = post.sender(arguments.get("from"))
    return written(whom, arguments["subject"], arguments["body"], arguments.get("cc", ()), sender)


def _check(kept: Any, post: SmtpSender) -> None:
    """Check a draft that another program may have written: whether it may be sent, and its
    recipients.

    Raises ToolError.
    """
    whom = addresses(
        [str(each) for name in ("To", "Cc", "Bcc") for each in kept.get_all(name, [])], "to"
    )
    if not whom:
        raise ToolError("The draft has no recipient.")
    if len(whom) > MOST_RECIPIENTS:
        raise ToolError(
            f"A message can have at most {MOST_RECIPIENTS} recipients; this one has {len(whom)}."
        )
    sender = post.sender(str(kept["From"]) if kept["From"] else None)
    del kept["From"]
    kept["From"] = sender


def _sent(ctx: Context[Mailer], post: SmtpSender, message: EmailMessage) -> ToolResult[SendResult]:
    """Send a message, keep a copy, and report the actual outcome."""
    how: Literal["smtp", "local"] = "smtp" if post.host else "local"
    refused = post.send(message) if post.host else {}
    try:
        kept = ctx.lifespan_state.boxes.put("sent", message, how)
    except ToolError as bad:
        if how == "local":
            raise
        to = [str(message[name]) for name in ("To", "Cc") if message[name]]
        said = f"Sent by SMTP through {post.host}, but no copy could be stored: {bad}"
        return ToolResult(
            SendResult("", "", how, str(message["From"]), to, str(message["Subject"]), refused),
            said,
        )
    ctx.updated(kept.uri)
    sent = SendResult(
        kept.id, kept.uri, how, kept.sender, [*kept.to, *kept.cc], kept.subject, refused
    )
    if how == "local":
        return ToolResult(
            sent,
            f"Not sent: no SMTP server is configured ({HOST}). Stored in the local "
            f"Maildir: {_line(kept)}",
        )
    words = f"Sent by SMTP through {post.host}: {_line(kept)}"
    if refused:
        words += ". Not to " + "; ".join(
            f"{one}, whom the server refused ({why})" for one, why in refused.items()
        )
    return ToolResult(sent, words)


def _listed(boxes: Maildir, box: Box, limit: int, nothing: str) -> ToolResult[MailList]:
    found: list[MailMessage] = []
    for letter in boxes.letters(box):
        if len(found) == limit:
            return _letters(found, False, nothing)
        found.append(letter)
    return _letters(found, True, nothing)


def _letters(found: list[MailMessage], complete: bool, nothing: str) -> ToolResult[MailList]:
    lines = [_line(letter) for letter in found] or [nothing]
    return ToolResult(
        MailList(found, complete), "\n".join([*lines, *([] if complete else ["There are more."])])
    )


def _line(letter: MailMessage) -> str:
    how = f", {letter.sent}" if letter.sent else ""
    return (
        f"“{letter.subject}” to {', '.join([*letter.to, *letter.cc])} [{letter.date}{how}; id "
        f"{letter.id}]"
    )


def _no_draft(id_: str) -> str:
    return f"There is no draft with the id {id_!r}. list_drafts shows the ids."


# -- reading ---------------------------------------------------------------------------------------


def _add_reading(made: Server, mailer: Mailer) -> None:
    @made.resource(SENT, name="sent", title="A sent message", mime_type="application/json")
    def sent(id: str) -> MailMessage | None:
        """A sent message, with its text and how it was sent."""
        return mailer.boxes.get("sent", id)

    @made.resource(DRAFTS, name="draft", title="A draft", mime_type="application/json")
    def draft(id: str) -> MailMessage | None:
        """A draft, with its text."""
        return mailer.boxes.get("drafts", id)

    @made.completion(SENT, "id")
    def complete_sent(value: str) -> list[str]:
        return [id_ for id_ in mailer.boxes.ids("sent") if id_.startswith(value)]

    @made.completion(DRAFTS, "id")
    def complete_draft(value: str) -> list[str]:
        return [id_ for id_ in mailer.boxes.ids("drafts") if id_.startswith(value)]

    @made.completion("out-of-office", "colleague")
    def complete_colleague(value: str) -> list[str]:
        """Those to whom letters went, the latest first."""
        known: dict[str, None] = {}
        for n, letter in enumerate(mailer.boxes.letters("sent")):
            if n >= MOST_SEARCHED // 10:
                break
            known |= dict.fromkeys([*letter.to, *letter.cc])
        return [one for one in known if value.casefold() in one.casefold()]


server = mail_server()
