"""Conversations as pure state machines: no I/O, no clocks, no tasks."""
