"""Sends mail through an SMTP server."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import os
import smtplib
import ssl
from collections.abc import Mapping
from email.headerregistry import Address
from email.message import EmailMessage
from typing import Any, Literal, cast

from msgspec import Struct

from interlock import ToolError

from .messages import addresses

HOST = "INTERLOCK_SMTP_HOST"
PORT = "INTERLOCK_SMTP_PORT"
USER = "INTERLOCK_SMTP_USER"
PASSWORD = "INTERLOCK_SMTP_PASSWORD"
TLS = "INTERLOCK_SMTP_TLS"
FROM = "INTERLOCK_MAIL_FROM"
SECONDS = "INTERLOCK_SMTP_SECONDS"
_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_LONGEST_REPLY = 300
_OURSELVES = "[127.0.0.1]"  # the name in EHLO, which does not reveal the name of this machine


class SmtpSender(Struct, frozen=True):
    """Sends mail through the server at `host`; without a host nothing is sent.

    `senders` are the allowed sender addresses, of which the first is the default; empty allows any.
    """

    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    seconds: float = 20.0
    senders: tuple[Address, ...] = ()

    def __repr__(self) -> str:  # without the password
        return f"Post({self.host}:{self.port}, {self.tls})"

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> SmtpSender:
        """Read the environment variables. Raises ToolError for invalid ones."""
        given = environment.get
        tls = (given(TLS) or "starttls").lower()
        if tls not in _PORTS:
            raise ToolError(f"{TLS} is {tls!r}; there are starttls, tls and none.")
        host = given(HOST, "").strip()
        user = given(USER, "")
        password = given(PASSWORD, "")
        post = cls(
            host=host,
            port=int(_number(given(PORT), PORT, _PORTS[tls], 65_535)),
            user=user,
            password=password,
            tls=cast(Literal["starttls", "tls", "none"], tls),
            seconds=_number(given(SECONDS), SECONDS, 20.0, 600),
            senders=tuple(addresses(given(FROM, ""), FROM)),
        )
        if host and bool(user) != bool(password):
            raise ToolError(f"Of {USER} and {PASSWORD} only one is set. Set both, or neither.")
        if host and user and tls == "none" and not _is_here(host):
            raise ToolError(
                f"{TLS} is none, so the password would be sent unencrypted to {host}. Set "
                "it to starttls or tls."
            )
        return post

    def sender(self, wanted: str | None) -> Address:
        """The sender of a message. Raises ToolError for an address that is not allowed."""
        if wanted is not None:
            found = addresses(wanted, "from")
            if len(found) != 1:
                raise ToolError("from: give one address.")
            own = [
                one
                for one in self.senders
                if one.addr_spec.casefold() == found[0].addr_spec.casefold()
            ]
            if self.senders and not own:
                raise ToolError(
                    "from: the sender must be "
                    f"{', '.join(one.addr_spec for one in self.senders)}, not "
                    f"{wanted}."
                )
            return found[0] if found[0].display_name or not own else own[0]
        if self.senders:
            return self.senders[0]
        if "@" in self.user:
            return addresses(self.user, USER)[0]
        if self.host:
            raise ToolError(f"There is no sender. Set {FROM}, or give from.")
        return Address("", "me", "localhost")

    def send(self, message: EmailMessage) -> dict[str, str]:
        """Send a message. Returns the refused recipients with the reasons; the others get it.

        Raises ToolError, without the password in its message, if nobody gets it, or if the outcome
        is unknown.
        """
        place = f"{self.host}:{self.port}"
        line: _SmtpConnection | None = None
        try:
            line = self._opened()
            refused = self._handed(line, message)
        except smtplib.SMTPRecipientsRefused as bad:
            whom = "; ".join(
                f"{one} ({self._clean(words)})" for one, (_, words) in bad.recipients.items()
            )
            raise ToolError(
                f"The mail server at {place} refused all addresses, and nothing was sent: {whom}"
            ) from None
        except smtplib.SMTPAuthenticationError as bad:
            raise ToolError(
                f"The mail server at {place} did not accept the user and password: "
                f"{self._clean(bad.smtp_error)}"
            ) from None
        except smtplib.SMTPResponseException as bad:
            raise ToolError(
                f"The mail server at {place} refused the message: {bad.smtp_code} "
                f"{self._clean(bad.smtp_error)}"
            ) from None
        except (smtplib.SMTPException, OSError, ValueError) as bad:
            raise ToolError(self._failure(place, bad, line)) from None
        finally:
            if line is not None:
                with contextlib.suppress(smtplib.SMTPException, OSError):
                    # whatever the answer to this, the outcome is known by now
                    line.quit()
                line.close()
        return {one: self._clean(words) for one, (_, words) in refused.items()}

    def _opened(self) -> _SmtpConnection:
        if self.tls == "tls":
            return _TlsConnection(
                self.host,
                self.port,
                local_hostname=_OURSELVES,
                timeout=self.seconds,
                context=ssl.create_default_context(),
            )
        return _SmtpConnection(
            self.host, self.port, local_hostname=_OURSELVES, timeout=self.seconds
        )

    def _handed(self, line: _SmtpConnection, message: EmailMessage) -> dict[str, tuple[int, bytes]]:
        if self.tls == "starttls":
            line.starttls(context=ssl.create_default_context())
        if self.user:
            line.login(self.user, self.password)
        return line.send_message(message)

    def _failure(self, place: str, bad: Exception, line: _SmtpConnection | None) -> str:
        late = isinstance(bad, TimeoutError) or isinstance(bad.__context__, TimeoutError)
        if line is not None and line.handed_over:
            what = (
                f"did not answer within {self.seconds:g} seconds"
                if late
                else "closed the connection"
            )
            return (
                f"The mail server at {place} {what} after it received the message, so it "
                "is unknown whether the message was sent. Ask the user before you send "
                "it again."
            )
        if late:
            return (
                f"The mail server at {place} did not answer within {self.seconds:g} seconds, and "
                "nothing was sent. Try again later."
            )
        if isinstance(bad, ssl.SSLError):
            why = getattr(bad, "verify_message", "") or bad.reason or "no words"
            return (
                f"There is no secure connection to the mail server at {place} "
                f"({self._clean(why)}), and nothing was sent."
            )
        if isinstance(bad, smtplib.SMTPServerDisconnected):
            return f"The mail server at {place} closed the connection, and nothing was sent."
        if isinstance(bad, OSError) and not isinstance(bad, smtplib.SMTPException):
            return (
                f"The mail server at {place} cannot be reached "
                f"({self._clean(bad.strerror or str(bad))}), and nothing was sent."
            )
        return (
            f"The message could not be sent to the mail server at {place}, and nothing "
            f"was sent: {self._clean(str(bad))}"
        )

    def _clean(self, words: str | bytes) -> str:
        """A server's reply in one line, with the password redacted in every encoding in which it
        may return.
        """
        text = words.decode("utf-8", "replace") if isinstance(words, bytes) else words
        if self.password:
            plain = self.password.encode()
            whole = f"\0{self.user}\0{self.password}".encode()
            for secret in (
                self.password,
                base64.b64encode(whole).decode(),
                base64.b64encode(plain).decode(),
            ):
                text = text.replace(secret, "***")
        text = " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())
        return text if len(text) <= _LONGEST_REPLY else text[:_LONGEST_REPLY] + "..."


class _SmtpConnection(smtplib.SMTP):
    """An SMTP connection that records whether the message was handed over, and so may have been
    sent.
    """

    handed_over = False

    def data(self, msg: Any) -> tuple[int, bytes]:
        self.handed_over = True
        return super().data(msg)


class _TlsConnection(smtplib.SMTP_SSL, _SmtpConnection):
    """The same, with TLS from the first byte."""


def _number(text: str | None, name: str, otherwise: float, most: float) -> float:
    try:
        number = float(text) if text else otherwise
    except ValueError:
        number = -1
    if not 0 < number <= most:
        raise ToolError(f"{name} is {text!r}; it must be a number up to {most:g}.")
    return number


def _is_here(host: str) -> bool:
    """Whether a server is on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
