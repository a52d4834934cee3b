"""Requests to the web site's ASGI app, without a socket."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import msgspec

from interlock import Server
from interlock.configs import Entry
from interlock.models.scripted import Scripted
from interlock_apps.fleet.hub import HubOptions
from interlock_apps.fleet.log import Log
from interlock_apps.host.app import Host
from interlock_apps.host.options import HostOptions
from interlock_apps.host.pages.site import HostSite

ORIGIN = "http://127.0.0.1:4711"


def host_of(*answers: Any, log: Log | None = None, **servers: Server) -> Host:
    """A host over servers of this process and a model that says what it is told to."""
    entries = [Entry(id=name, command=("unused",)) for name in servers]
    return Host(
        entries,
        models=[Scripted(*answers)],
        log=log,
        options=HostOptions(
            ask_to_start=False, hub=HubOptions(target=lambda entry: servers[entry.id])
        ),
    )


class Answer:
    """What came back."""

    def __init__(self) -> None:
        self.status = 0
        self.headers = dict[str, str]()
        self.body = b""

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Browser:
    """A browser as far as it matters: it has a cookie once it has one, sends what browsers send,
    and knows where the page lies.
    """

    def __init__(self, site: HostSite) -> None:
        self.site = site
        self.cookies = dict[str, str]()
        self.csrf = ""

    async def ask(
        self, method: str, target: str, body: bytes = b"", app: Any = None, **headers: str
    ) -> Answer:
        parts = urlsplit(
            target if target.startswith("/?token") or app is not None else self.site.place + target
        )
        sent = {
            "host": urlsplit(ORIGIN).netloc,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        if self.cookies and "cookie" not in sent:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": parts.path,
            "raw_path": parts.path.encode(),
            "query_string": parts.query.encode(),
            "root_path": "",
            "server": ("127.0.0.1", 4711),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
            "client": ("127.0.0.1", 1),
        }
        answer = Answer()
        sent_body = False

        async def receive() -> Any:
            nonlocal sent_body
            if sent_body:
                await asyncio.get_running_loop().create_future()
            sent_body = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {
                    name.decode().lower(): value.decode() for name, value in message["headers"]
                }
            else:
                answer.body += message.get("body", b"")

        await (app or self.site)(scope, receive, send)
        if "set-cookie" in answer.headers:
            name, _, value = answer.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer

    async def enter(self) -> Answer:
        """Open the address that lets in once, and the page."""
        await self.ask("GET", self.site.entry.removeprefix(ORIGIN))
        page = await self.ask("GET", "/")
        self.csrf = (
            page.body.decode().partition('name="interlock-csrf" content="')[2].partition('"')[0]
        )
        return page

    async def act(self, act: str, **fields: Any) -> Any:
        """Do something; the value. Fails where the page is told that it cannot be done."""
        answer = await self.tried(act, **fields)
        assert answer["ok"], answer
        return answer["value"]

    async def tried(self, act: str, **fields: Any) -> Any:
        """Do something, and what is said of it."""
        body = msgspec.json.encode({"act": act, **fields})
        return (await self.ask("POST", "/api/act", body, origin=ORIGIN, x_interlock=self.csrf)).json
