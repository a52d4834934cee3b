"""Running an author's function: context, limits, threads, sampling and session state."""
