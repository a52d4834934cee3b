"""Messages of a tape as pages show them: rows, details, and what belongs to which call."""
