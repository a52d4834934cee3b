"""Interlock measured beside the official SDKs and FastMCP, in the same run, by a load generator
that uses none of them."""
