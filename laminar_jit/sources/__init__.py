"""Inputs that come with the package."""
