"""Python types to JSON and back: signatures, JSON Schema, media, forms and URI templates."""
