"""A server on which what callers see depends on their role, and the servers without what each role
does not see (also a program).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock import Caller, Context, Feature, Server

ROLES = ("staff", "guest", "nobody")


def role(caller: Caller) -> str:
    """The role of a principal is its subject; where there is none, it is the name of the client's
    program.
    """
    if caller.principal is not None:
        return caller.principal.subject
    return caller.info.name if caller.info is not None else "nobody"


def sees(role: str, feature: Feature) -> bool:
    """Staff sees everything, guests what is tagged for them, and nobody else anything."""
    return role == "staff" or (role == "guest" and "guest" in feature.tags)


def office(*, hook: bool = True, role_of: str = "staff", **options: Any) -> Server:
    """The server with its hook; or, without, the server that has only what one role sees."""
    server = Server("office", **options)
    if hook:
        server.visible(role)(sees)

    def has(tags: tuple[str, ...]) -> bool:
        return hook or role_of == "staff" or (role_of == "guest" and "guest" in tags)

    def add(
        adder: Callable[..., Any], *given: Any, tags: tuple[str, ...] = (), **more: Any
    ) -> None:
        if has(tags):
            adder(*given, tags=tags if hook else None, meta=None if hook else meta(tags), **more)

    def meta(tags: tuple[str, ...]) -> dict[str, Any] | None:
        return {"interlock/tags": sorted(tags)} if tags else None

    async def hire(name: str) -> str:
        return f"hired {name}"

    async def greet(name: str) -> str:
        return f"hello {name}"

    async def peek(uri: str, ctx: Context) -> str:
        return (await ctx.read_resource(uri))[0].text or ""

    async def pay(ctx: Context) -> str:
        return str(await ctx.elicit("how much?", int))

    async def file(name: str) -> str:
        return f"file {name}"

    add(server.add_tool, hire)
    add(server.add_tool, greet, tags=("guest",))
    add(server.add_tool, peek, tags=("guest",))
    add(server.add_tool, pay, tags=("guest", "money"))
    add(server.add_tool, hire, name="fire", scopes="people:fire")
    add(server.add_resource, "docs://salaries", "42")
    add(server.add_resource, "docs://menu", "soup", tags=("guest",))
    add(server.add_resource, "people://{name}", file)
    add(server.add_resource, "rooms://{name}", file, tags=("guest",))
    add(server.add_prompt, hire, name="contract")
    add(server.add_prompt, greet, name="welcome", tags=("guest",))
    if has(()):
        server.completion("contract", "name")(lambda value: [f"{value}-employee"])
        server.completion("people://{name}", "name")(lambda value: [f"{value}-person"])
    if has(("guest",)):
        server.completion("welcome", "name")(lambda value: [f"{value}-visitor"])
    return server


if __name__ == "__main__":
    office().run()
