"""A server in the shape of the tutorials' first one: two tools for the weather, with Interlock
under the name that is imported there."""

from __future__ import annotations

from typing import Any

from interlock import Server as FastMCP

mcp = FastMCP("weather")

ALERTS: dict[str, list[dict[str, Any]]] = {
    "CA": [{"event": "Heat Advisory", "areaDesc": "Central Valley", "severity": "Moderate"}],
    "WA": [],
}


def format_alert(alert: dict[str, Any]) -> str:
    """An alert as a person reads it."""
    return f"Event: {alert['event']}\nArea: {alert['areaDesc']}\nSeverity: {alert['severity']}"


@mcp.tool()
async def get_alerts(state: str) -> str:
    """Get weather alerts for a US state.

    Args:
        state: Two-letter US state code (e.g. CA, NY)
    """
    if state not in ALERTS:
        return "Unable to fetch alerts or no alerts found."
    alerts = [format_alert(alert) for alert in ALERTS[state]]
    return "\n---\n".join(alerts) or "No active alerts for this state."


@mcp.tool()
async def get_forecast(latitude: float, longitude: float) -> str:
    """Get the weather forecast for a place.

    Args:
        latitude: Latitude of the place
        longitude: Longitude of the place
    """
    return f"Tonight at {latitude:.1f}, {longitude:.1f}: 55°F, clear."


if __name__ == "__main__":
    mcp.run(transport="stdio")
