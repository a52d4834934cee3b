"""Adapters to model providers, their interface, and the choice of a model."""
