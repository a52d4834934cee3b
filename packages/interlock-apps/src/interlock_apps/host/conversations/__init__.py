"""The conversations of a host: their list, branches, search and export, and projects."""
