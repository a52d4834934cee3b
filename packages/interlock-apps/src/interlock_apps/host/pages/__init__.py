"""The pages of the host in the browser."""
