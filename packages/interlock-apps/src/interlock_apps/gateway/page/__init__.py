"""The page of a gateway: its servers and views, what is withheld, and the audit."""
