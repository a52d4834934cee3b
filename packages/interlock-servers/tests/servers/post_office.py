"""An SMTP server for the tests: it keeps what it is given, or behaves as badly as it is told."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

USER = "ann"
PASSWORD = "s3cret-Pass=word"


@dataclass
class Handed:
    """One letter as the server was given it."""

    sender: str
    recipients: list[str]
    data: bytes
    safe: bool
    user: str | None


@dataclass
class Conduct:
    """How the server behaves.

    `at` names a place ("connect", "EHLO", "MAIL", "RCPT", "DATA", "end", "QUIT") where it does
    `then`: "hang", "leave", or a reply of its own.
    """

    starttls: bool = True
    auth: bool = True
    refused: dict[str, str] = field(default_factory=dict)
    at: str = ""
    then: str = ""


class PostOffice:
    """A server on loopback, in a thread of its own, until the block is left."""

    def __init__(self, conduct: Conduct, pem: Path | None, *, safe: bool = False) -> None:
        self.conduct = conduct
        self.safe = safe
        self.letters: list[Handed] = []
        self.commands: list[str] = []
        self._tls: ssl.SSLContext | None = None
        if pem is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(pem)
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._done: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> PostOffice:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: Any) -> None:
        assert self._done is not None
        self._loop.call_soon_threadsafe(self._done.set)
        self._thread.join(10)
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._done = asyncio.Event()
        talks: set[asyncio.Task[None]] = set()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            talks.add(task)
            try:
                await _Talk(self, reader, writer).run()
            except (
                ConnectionError,
                asyncio.IncompleteReadError,
                asyncio.CancelledError,
                ssl.SSLError,
            ):
                pass
            finally:
                talks.discard(task)
                writer.close()

        server = await asyncio.start_server(
            talk, "127.0.0.1", 0, ssl=self._tls if self.safe else None
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._done.wait()
        server.close()
        for task in list(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


class _Talk:
    """One client, from the greeting to its end."""

    def __init__(
        self, office: PostOffice, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.office = office
        self.reader = reader
        self.writer = writer
        self.safe = office.safe
        self.user = None
        self.sender = ""
        self.recipients = []

    async def run(self) -> None:
        if not await self._astray("connect"):
            self._say("220 ready")
        while line := await self.reader.readline():
            text = line.decode().strip()
            word = text.partition(" ")[0].upper()
            self.office.commands.append(word)
            if await self._astray(word):
                continue
            act: Callable[[str], Any] = getattr(self, f"_{word.lower()}", self._unknown)
            if await act(text) is False:
                return

    async def _astray(self, place: str) -> bool:
        """Whether the server does otherwise here than it should."""
        if self.office.conduct.at != place:
            return False
        then = self.office.conduct.then
        if then == "hang":
            await asyncio.Event().wait()
        if then == "leave":
            raise ConnectionResetError
        self._say(then)
        return True

    def _say(self, *lines: str) -> None:
        self.writer.write("".join(f"{line}\r\n" for line in lines).encode())

    async def _unknown(self, text: str) -> None:
        self._say("502 unknown")

    async def _ehlo(self, text: str) -> None:
        offers = ["8BITMIME"]
        if self.office.conduct.starttls and not self.safe:
            offers.append("STARTTLS")
        if self.office.conduct.auth:
            offers.append("AUTH PLAIN")
        self._say("250-here", *(f"250-{offer}" for offer in offers), "250 SIZE 10000000")

    async def _starttls(self, text: str) -> None:
        self._say("220 go on")
        assert self.office._tls is not None
        await self.writer.start_tls(self.office._tls)
        self.safe = True

    async def _auth(self, text: str) -> None:
        _, user, password = base64.b64decode(text.split()[2]).decode().split("\0")
        if (user, password) == (USER, PASSWORD):
            self.user = user
            self._say("235 welcome")
        else:
            self._say(
                f"535 no, {text.split()[2]} which is {password} is wrong"
            )  # as no server should

    async def _mail(self, text: str) -> None:
        self.sender = text.partition(":")[2].partition(">")[0].lstrip("<")
        self.recipients = []
        self._say("250 ok")

    async def _rcpt(self, text: str) -> None:
        whom = text.partition(":")[2].partition(">")[0].lstrip("<")
        if whom in self.office.conduct.refused:
            self._say(f"550 {self.office.conduct.refused[whom]}")
        else:
            self.recipients.append(whom)
            self._say("250 ok")

    async def _data(self, text: str) -> None:
        self._say("354 go on")
        data = await self.reader.readuntil(b"\r\n.\r\n")
        letter = (b"\r\n" + data[:-3]).replace(b"\r\n..", b"\r\n.")[2:]  # RFC 5321, section 4.5.2
        self.office.letters.append(
            Handed(self.sender, self.recipients, letter, self.safe, self.user)
        )
        if not await self._astray("end"):
            self._say("250 kept")

    async def _rset(self, text: str) -> None:
        self._say("250 ok")

    async def _quit(self, text: str) -> bool:
        self._say("221 bye")
        return False


@contextmanager
def post_office(
    pem: Path | None = None, *, safe: bool = False, **conduct: Any
) -> Iterator[PostOffice]:
    """A server that behaves as it is told; `safe` speaks TLS from the first byte."""
    with PostOffice(Conduct(**conduct), pem, safe=safe) as office:
        yield office


def certificate(folder: Path, *, days: int = 2) -> Path:
    """A key and a certificate for loopback, which is its own authority, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=3))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "loopback.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path
