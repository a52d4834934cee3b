"""The turn of a conversation, as decisions: pure, without a clock, a network or a model."""
