"""The commands `interlock auth serve` and `interlock auth account`."""
