"""Mail messages: checks what a model wants to send, and writes and parses RFC 5322."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email import policy
from email.headerregistry import Address, HeaderRegistry
from email.message import EmailMessage
from email.parser import BytesParser
from email.utils import format_datetime, make_msgid
from typing import Any, cast

from msgspec import Struct, field

from interlock import ToolError

MOST_RECIPIENTS = 50
MOST_SUBJECT = 500  # characters
MOST_BODY = 512 * 1024  # bytes
HOW = "X-Interlock-Sent"  # header of the stored copy: how it was sent

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LOCAL = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}")  # RFC 5322, section 3.2.3
_DOMAIN = re.compile(r"(?!.{254})(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)*[^\W_](?:[\w-]{0,61}[^\W_])?")
_registry = HeaderRegistry()
ON_THE_WIRE = policy.SMTP.clone(cte_type="7bit")  # accepted by every server


class MailMessage(Struct, rename={"sender": "from"}, omit_defaults=True):
    """A stored message.

    `sent` says how it was sent (not set for a draft); `uri` is its resource.
    """

    id: str
    uri: str
    sender: str
    to: list[str]
    subject: str
    date: str = ""
    cc: list[str] = field(default_factory=list)
    body: str = ""
    sent: str = ""


def written(
    to: str | Sequence[str],
    subject: str,
    body: str,
    cc: str | Sequence[str],
    sender: Address,
    *,
    now: datetime | None = None,
) -> EmailMessage:
    """Create a message for sending. Raises ToolError for invalid arguments."""
    whom = addresses(to, "to")
    copies = addresses(cc, "cc")
    if not whom:
        raise ToolError("to: no recipient. Give at least one address.")
    if len(whom) + len(copies) > MOST_RECIPIENTS:
        raise ToolError(
            f"A message can have at most {MOST_RECIPIENTS} recipients; this one has "
            f"{len(whom) + len(copies)}."
        )
    if found := _CONTROL.search(subject):
        raise ToolError(f"subject: it must be one line, but it has {_sign(found[0])} in it.")
    if len(subject) > MOST_SUBJECT:
        raise ToolError(f"subject: it has more than {MOST_SUBJECT} characters.")
    message = EmailMessage(policy=ON_THE_WIRE)
    message["From"] = sender
    message["To"] = whom
    if copies:
        message["Cc"] = copies
    message["Subject"] = subject
    message["Date"] = format_datetime(now or datetime.now(UTC))
    message["Message-ID"] = make_msgid(domain=sender.domain)
    message.set_content(_body(body))
    return message


def addresses(given: str | Sequence[str], argument: str) -> list[Address]:
    """The addresses in one or several texts, each once. Raises ToolError for anything else."""
    found: dict[str, Address] = {}
    for text in [given] if isinstance(given, str) else given:
        if control := _CONTROL.search(text):
            raise ToolError(
                f"{argument}: an address must be one line, but one has {_sign(control[0])} in it."
            )
        if len(text) > MOST_RECIPIENTS * 400:
            raise ToolError(f"{argument}: the list of addresses is too long.")
        if not text.strip():
            continue
        for address in _read(text):
            plain = _plain(address) if address is not None else None
            if plain is None:
                raise ToolError(
                    f"{argument}: {_shown(text)} is not an address. Write it like "
                    "ann@example.com, or "
                    "Ann Lee <ann@example.com>."
                )
            found.setdefault(plain.addr_spec.casefold(), plain)
    return list(found.values())


def _read(text: str) -> Sequence[Address | None]:
    """The addresses in a text, with None for an invalid one and for a group, whose members are
    unknown.
    """
    try:
        header = cast(Any, _registry("To", text))
        if header.defects or any(group.display_name is not None for group in header.groups):
            return [None]
        return header.addresses or [None]
    except (
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
    ):  # the library raises for some invalid addresses
        return [None]


def _plain(address: Address) -> Address | None:
    """An address that every server accepts, with an international domain in IDNA form.

    None if it has no such form.
    """
    local = address.username
    domain = address.domain
    if (
        local.startswith(".")
        or local.endswith(".")
        or ".." in local
        or not _LOCAL.fullmatch(local)
        or not _DOMAIN.fullmatch(domain)
    ):
        return None
    if domain.isascii():
        return address
    try:
        return Address(address.display_name, local, domain.encode("idna").decode())
    except (ValueError, IndexError):
        return None


def letter_of(data: bytes, id_: str, uri: str, *, whole: bool) -> MailMessage:
    """Parse a stored message; with its body if `whole`.

    It never raises, whatever the file contains.
    """
    message = BytesParser(policy=policy.default).parsebytes(data, headersonly=False)
    try:
        moment = getattr(message["Date"], "datetime", None)
    except (ValueError, LookupError, AttributeError, TypeError):
        moment = None
    return MailMessage(
        id=id_,
        uri=uri,
        sender=_header(message, "From"),
        to=_people(message, "To"),
        cc=_people(message, "Cc"),
        subject=_header(message, "Subject"),
        date=moment.isoformat() if moment is not None else "",
        body=_text(message) if whole else "",
        sent=_header(message, HOW),
    )


def _body(text: str) -> str:
    if "\0" in text:
        raise ToolError("body: it has a NUL character, which a message cannot contain.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise ToolError("body: it has a lone surrogate.") from None
    if size > MOST_BODY:
        raise ToolError(f"body: it has more than {MOST_BODY} bytes.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _header(message: Any, name: str) -> str:
    try:
        return " ".join(str(message[name] or "").split())
    except (ValueError, LookupError, AttributeError, TypeError):
        return ""


def _people(message: Any, name: str) -> list[str]:
    try:
        return [
            str(address) for header in message.get_all(name, []) for address in header.addresses
        ]
    except (ValueError, LookupError, AttributeError, TypeError):
        return []


def _text(message: Any) -> str:
    try:
        part = message.get_body(("plain", "html"))
        return str(part.get_content()) if part is not None else ""
    except (ValueError, LookupError, AttributeError, TypeError):
        return "(This part of the message cannot be read.)"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "...")


def _sign(sign: str) -> str:
    return (
        "a line break"
        if sign in "\r\n\u2028\u2029\x85"
        else f"the control character {ord(sign):#04x}"
    )
