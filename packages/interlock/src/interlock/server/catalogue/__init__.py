"""The catalogue of features: tools, resources, prompts, their lists and their visibility."""
