"""A server as tutorials write it: helpers first, tools with `Args:`,
and `run(transport=...)` at the end."""

from typing import Any

import httpx

from interlock import Server as FastMCP

mcp = FastMCP("gales")

BASE = "https://gales.invalid"


async def fetch(where: str) -> Any:
    """What stands behind a path or an address, or None where it cannot be had."""
    async with httpx.AsyncClient(base_url=BASE, timeout=5.0) as http:
        answer = await http.get(where)
    return answer.json() if answer.is_success else None


def line(feature: dict) -> str:
    """One alert in one line."""
    about = feature["properties"]
    return f"{about.get('event', 'Something')} in {about.get('areaDesc', 'places unknown')}"


@mcp.tool()
async def gales(region: str) -> str:
    """The gales of a region.

    Args:
        region: Its two letters (such as CA)
    """
    try:
        data = await fetch(f"/alerts/active/area/{region}")
    except httpx.HTTPError:
        return "The gales cannot be had."
    return "\n".join(line(feature) for feature in data["features"]) or "No gales."


@mcp.tool()
async def outlook(north: float, east: float) -> str:
    """The outlook for a place.

    Args:
        north: Degrees of latitude
        east: Degrees of longitude
    """
    try:
        point = await fetch(f"/points/{north},{east}")
        data = await fetch(point["properties"]["forecast"])
    except httpx.HTTPError:
        return "The outlook cannot be had."
    return "\n".join(f"{p['name']}: {p['temperature']}°" for p in data["properties"]["periods"][:2])


if __name__ == "__main__":
    mcp.run(transport="stdio")
