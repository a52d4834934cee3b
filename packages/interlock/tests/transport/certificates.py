"""A certificate authority of the tests' own, and servers' contexts that it vouches for."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


class Authority:
    """A CA whose certificate stands in `folder`/ca.pem."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "ca.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Interlock test CA")])
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        made = (
            self._begin(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(True, None), True)
            .add_extension(usage, True)
        )
        self.file.write_bytes(
            made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )

    def _begin(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, days: int = 30
    ) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder().subject_name(subject).issuer_name(self._name).public_key(key)
        )
        builder = (
            builder.serial_number(x509.random_serial_number())
            .not_valid_before(now - 60 * _DAY)
            .not_valid_after(now + days * _DAY)
        )
        identity = x509.SubjectKeyIdentifier.from_public_key(key)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return builder.add_extension(identity, False).add_extension(issuer, False)

    def server(self, *names: str, days: int = 30) -> ssl.SSLContext:
        """A server's context, with a certificate for names and addresses that is valid for `days`
        more.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        others = x509.SubjectAlternativeName([_general(name) for name in names])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a server of the tests")])
        made = (
            self._begin(subject, key.public_key(), days)
            .add_extension(others, False)
            .sign(self._key, hashes.SHA256())
        )
        path = self.folder / f"{names[0].replace(':', '_')}.{days}.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
