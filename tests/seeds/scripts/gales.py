"""A server as tutorials write it: helpers first, tools with `Args:`, and `run(transport=...)` at the end."""

from typing import Any

import httpx

from interlock import Server as FastMCP

mcp = FastMCP("gales")

BASE = "https://gales.invalid"
AGENT = "gales/0.1"


async def fetch(url: str) -> dict[str, Any] | None:
    """What stands behind an address, or None where it cannot be had."""
    async with httpx.AsyncClient() as client:
        try:
            response = await client.get(url, headers={"User-Agent": AGENT}, timeout=5.0)
            response.raise_for_status()
            return response.json()
        except Exception:
            return None


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
    data = await fetch(f"{BASE}/alerts/active/area/{region}")
    if not data or "features" not in data:
        return "The gales cannot be had."
    return "\n".join(line(feature) for feature in data["features"]) or "No gales."


@mcp.tool()
async def outlook(north: float, east: float) -> str:
    """The outlook for a place.

    Args:
        north: Degrees of latitude
        east: Degrees of longitude
    """
    points = await fetch(f"{BASE}/points/{north},{east}")
    if not points:
        return "The outlook cannot be had."
    data = await fetch(points["properties"]["forecast"])
    return "\n".join(f"{p['name']}: {p['temperature']}°" for p in data["properties"]["periods"][:2]) if data else "No outlook."


if __name__ == "__main__":
    mcp.run(transport="stdio")
