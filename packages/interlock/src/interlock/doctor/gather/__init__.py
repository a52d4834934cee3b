"""The gatherers of the doctor: each does the I/O of one part, and returns facts."""
