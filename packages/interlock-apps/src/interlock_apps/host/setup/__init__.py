"""Setting up a host from its page: servers, models, logins."""
