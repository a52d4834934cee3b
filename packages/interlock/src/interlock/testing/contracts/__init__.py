"""Contract checks: what every implementation of an interface must do."""
