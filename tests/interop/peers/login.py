"""The common parts of the log-ins of both Python SDKs: a storage in memory, and a browser with a
user."""

import asyncio
import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

URL, PERSON = sys.argv[1:3]
REDIRECT = "http://127.0.0.1:39998/callback"


class Storage:
    """Keeps tokens and registration."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


class Browser:
    """Visits the given URL, and records the redirect."""

    def __init__(self) -> None:
        self.visits = 0
        self.told: dict[str, list[str]] = {}

    async def visit(self, url: str) -> None:
        self.visits += 1
        process = await asyncio.create_subprocess_exec(
            sys.executable, PERSON, url, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await process.communicate()
        self.told = parse_qs(urlsplit(printed.decode().strip()).query)

    def said(self, name: str) -> str | None:
        return self.told.get(name, [None])[0]


def report(browser: Browser, storage: Storage, tools: list[str], who: str, ordered: str) -> None:
    """Report the result."""
    kept = storage.tokens
    print(
        json.dumps(
            {
                "visits": browser.visits,
                "tools": tools,
                "who": who,
                "ordered": ordered,
                "refresh": bool(kept.refresh_token),
            }
        )
    )
