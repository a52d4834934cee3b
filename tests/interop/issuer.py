"""A small authorization server with one account, for the peers of other makers: `issuer.py --port N
--name X --password Y`."""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

import uvicorn

from interlock_issuer.app import Issuer
from interlock_issuer.interfaces import Client
from interlock_issuer.login.accounts import Accounts
from interlock_issuer.login.users import LocalUsers

CLIENT = Client(
    id="suite", name="A program of another maker", redirect_uris=("http://127.0.0.1/callback",)
)  # at any port


async def serve(port: int, name: str, password: str, folder: Path) -> None:
    """Serve until the process is told to end."""
    accounts = Accounts(folder / "accounts")
    await accounts.add(name, password)
    issuer = Issuer(f"http://127.0.0.1:{port}", LocalUsers(accounts), clients=[CLIENT])
    await uvicorn.Server(
        uvicorn.Config(issuer, host="127.0.0.1", port=port, log_level="warning")
    ).serve()


def main() -> None:
    """Serve at the port that the command line names."""
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    parser.add_argument("--port", type=int, required=True, help="the port of 127.0.0.1 to serve at")
    parser.add_argument("--name", required=True, help="the name of the one account")
    parser.add_argument("--password", required=True, help="its password")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(serve(told.port, told.name, told.password, Path(folder)))


if __name__ == "__main__":
    main()
