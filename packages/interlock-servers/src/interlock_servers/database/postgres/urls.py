"""Parses and redacts PostgreSQL URLs."""

from __future__ import annotations

import os
from urllib.parse import parse_qs, unquote, urlsplit

from interlock.untrusted.invisible import one_line as line

_ADVICE = (
    "postgresql://user@host:5432/database, or postgresql:///database?host=/folder/of/the/socket"
)


class PostgresUrl:
    """The address of a database.

    `place` is host, port and name; `clean` redacts the password in messages.
    """

    def __init__(self, url: str) -> None:
        """Raise ValueError, without the URL in its message, for an invalid URL."""
        self.url = url
        try:
            parts = urlsplit(url)
            query = parse_qs(parts.query)
        except ValueError:
            raise ValueError(f"This is not a URL of PostgreSQL: {_ADVICE}.") from None
        who, _, hosts = parts.netloc.rpartition("@")
        ports = [
            port for host in hosts.split(",") if (port := host.rpartition("]")[2].partition(":")[2])
        ]
        if (
            parts.scheme not in ("postgres", "postgresql")
            or parts.fragment
            or not all(port.isascii() and port.isdigit() for port in ports)
        ):
            raise ValueError(
                f"This is not a URL of PostgreSQL: {_ADVICE}. Write characters such as / "
                "# @ in a password as %2F %23 %40."
            )
        host = (
            unquote(hosts)
            or query.get("host", [""])[-1]
            or os.environ.get("PGHOST", "")
            or "this machine"
        )
        port = (
            "" if ports else query.get("port", [""])[-1] or os.environ.get("PGPORT", "") or "5432"
        )
        database = (
            unquote(parts.path.strip("/"))
            or query.get("dbname", query.get("database", [""]))[-1]
            or os.environ.get("PGDATABASE", "")
        )
        self.place = line(f"{host}{f':{port}' if port else ''}{f'/{database}' if database else ''}")
        secrets = (
            unquote(who.partition(":")[2]),
            who.partition(":")[2],
            query.get("password", [""])[-1],
        )
        self._secrets = [secret for secret in secrets if secret]

    def clean(self, text: str) -> str:
        """A text with the password redacted."""
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return text
