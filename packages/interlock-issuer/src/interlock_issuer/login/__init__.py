"""Login of users: pages, browser sessions, consent and local accounts."""
