"""The gateway's page: who gets in, and how it reads the audit."""

from __future__ import annotations

import json
from pathlib import Path

from interlock import HttpFetch, Request, Response
from interlock_apps.gateway.audit import AuditOptions, GatewayAudit
from interlock_apps.gateway.page.site import MOST_ENTRIES, AuditTail
from tests.gateway.page_stage import Shown, serving


async def send(method: str, url: str, body: bytes = b"", **headers: str) -> Response:
    """Send a request without following redirects."""
    fetch = HttpFetch()
    try:
        named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
        response = await fetch(Request(method, url, named, body))
        await response.read(1 << 20)
        return response
    finally:
        await fetch.aclose()


async def test_only_the_browser_that_opened_the_address_gets_in(tmp_path: Path) -> None:
    """The address works once; acts need the token of the page; other sites are refused."""
    async with serving(Shown(tmp_path)) as site:
        base = site.entry.partition("/?")[0]
        assert (await send("GET", f"{base}{site.place}/")).status == 401
        entry = site.entry
        first = await send("GET", entry)
        cookie = first.headers["set-cookie"].partition(";")[0]
        assert first.status == 303
        assert (await send("GET", entry)).status == 401
        page = await send("GET", f"{base}{site.place}/", cookie=cookie)
        assert page.status == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        act = json.dumps({"act": "reload"}).encode()
        where = f"{base}{site.place}/api/act"
        assert (await send("POST", where, act, cookie=cookie)).status == 403
        foreign = await send("POST", where, act, cookie=cookie, origin="https://evil.example")
        assert foreign.status == 403


def tail_of(path: Path) -> AuditTail:
    """The end of the audit in a file."""
    audit = GatewayAudit(AuditOptions(path=path))
    return AuditTail(lambda: audit)


async def test_the_audit_is_read_as_it_grows(tmp_path: Path) -> None:
    """What other workers write too, and never a part of a line twice."""
    path = tmp_path / "audit.jsonl"
    tail = tail_of(path)
    assert tail.read() == []
    path.write_bytes(b'{"id":1}\n{"id":2}\n{"id"')
    assert [entry["id"] for entry in tail.read()] == [1, 2]
    with path.open("ab") as file:
        file.write(b':3}\n{"id":4}\n')
    assert [entry["id"] for entry in tail.read()] == [3, 4]
    assert tail.read() == []


async def test_a_long_audit_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"".join(b'{"id":%d,"x":"%s"}\n' % (n, b"x" * 100) for n in range(9000)))
    found = tail_of(path).read()
    assert len(found) == MOST_ENTRIES
    assert found[-1]["id"] == 8999


async def test_without_a_file_the_recent_entries_are_shown() -> None:
    audit = GatewayAudit()
    tail = AuditTail(lambda: audit)
    audit.note("withheld", {"server": "crm"})
    assert [entry["event"] for entry in tail.read()] == ["withheld"]
    audit.note("approved", {"server": "crm"})
    assert [entry["event"] for entry in tail.read()] == ["approved"]
    assert tail.read() == []
