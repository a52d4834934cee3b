"""Roots: the folders that servers are told of are those that were granted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interlock import REVISIONS, Context, Server
from interlock.models.scripted import call
from tests.host.scene import ALLOW, last, scene


def asker(**options: Any) -> Server:
    """A server that asks for roots."""
    server = Server("asker", **options)

    @server.tool
    async def roots(ctx: Context) -> str:
        """Ask for roots."""
        return " ".join(root.uri for root in await ctx.roots())

    return server


@pytest.mark.parametrize("revision", REVISIONS)
async def test_roots_are_what_was_granted(revision: str, tmp_path: Path) -> None:
    """`ROO-01`, `ROO-05`, `ROO-06`: the server's own and those for all, as far as they are there,
    and nothing of another server's.
    """
    own, all_of_them, others, gone = (tmp_path / name for name in ("own", "all", "others", "gone"))
    for folder in (own, all_of_them, others, gone):
        folder.mkdir()
    roots = {"asker": [own, gone, own], "": [all_of_them], "other": [others]}
    gone.rmdir()
    servers = {"asker": asker(revisions=revision), "other": asker(revisions=revision)}
    async with scene(servers, call("asker__roots"), "done", policy=ALLOW, roots=roots) as one:
        await one.host.session().say("ask")
        assert f"{all_of_them.as_uri()} {own.as_uri()}" in last(one)
        assert "gone" not in last(one)
        assert "others" not in last(one)


async def test_roots_are_granted_and_taken_back(tmp_path: Path) -> None:
    """Each time the next question sees it; what is not a folder, or no server, is refused with
    words.
    """
    async with scene({"asker": asker()}, *[call("asker__roots"), "done"] * 3, policy=ALLOW) as one:
        session = one.host.session()
        one.host.grant(tmp_path, "asker")
        one.host.grant(tmp_path, "asker")
        assert one.host.roots.granted == {"asker": (str(tmp_path),)}
        await session.say("ask")
        assert tmp_path.as_uri() in last(one)
        one.host.revoke(tmp_path, "asker")
        one.host.revoke(tmp_path, "asker")
        assert one.host.roots.granted == {}
        await session.say("ask")
        assert tmp_path.as_uri() not in last(one)
        with pytest.raises(ValueError, match="is not a folder"):
            one.host.grant(tmp_path / "none")
        with pytest.raises(Exception, match="There is no server nobody"):
            one.host.grant(tmp_path, "nobody")
