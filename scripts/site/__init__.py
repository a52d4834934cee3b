"""The documentation site: generated pages, the build, and the checks of what was built."""
