"""The final texts of the tools of `everything.py`, once their questions are answered."""

from __future__ import annotations

from typing import Any

FORM = {
    "name": "Ann",
    "color": "red",
    "ok": True,
    "context": "a rainy day",
    "username": "ann",
    "email": "ann@example.com",
}

ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "test_simple_text": ({}, "This is a simple text response for testing."),
    "test_sampling": ({"prompt": "Where?"}, "LLM response: Paris"),
    "test_elicitation": (
        {"message": "Who?"},
        'User response: action=accept, content={"email": "ann@example.com", "username": "ann"}',
    ),
    "test_missing_capability": ({}, "Paris"),
    "test_streaming_elicitation": ({}, "Hello, Ann!"),
    "test_x_mcp_header": ({"region": "eu-west"}, "Region: eu-west"),
    "json_schema_2020_12_tool": ({"email": "a@b.c"}, 'Valid: {"email": "a@b.c"}'),
    "test_logging_tool": ({}, "The log has one message more, for whoever wants it."),
    "test_tool_with_progress": ({}, "All of it is done."),
    "test_reconnection": ({}, "Reconnection test completed successfully."),
    "test_input_required_result_elicitation": ({}, "Hello, Ann!"),
    "test_input_required_result_sampling": ({}, "Paris"),
    "test_input_required_result_list_roots": ({}, "Roots: file:///srv/data"),
    "test_input_required_result_request_state": ({}, "state-ok"),
    "test_input_required_result_multiple_inputs": ({}, "Paris Ann has 1 roots."),
    "test_input_required_result_multi_round": ({}, "Ann likes red."),
    "test_input_required_result_tampered_state": ({}, "Nobody has touched the state."),
    "test_input_required_result_capabilities": ({}, "Asked for a name and a greeting."),
}
