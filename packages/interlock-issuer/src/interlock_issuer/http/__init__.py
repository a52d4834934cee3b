"""HTTP of the issuer: endpoints, parameters, responses, OAuth errors and limits on requests."""
