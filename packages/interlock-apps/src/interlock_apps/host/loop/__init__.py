"""The agent loop: the decisions of a turn, without clock, network or model."""
