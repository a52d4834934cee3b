"""Observability: counters and histograms of calls, and metrics in the format of Prometheus."""
