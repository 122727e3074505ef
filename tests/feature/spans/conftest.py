"""Fixtures of the server and of sidecars that reject chosen resources, for use here."""

from tests.feature.rejection.conftest import join, serve

__all__ = ["join", "serve"]
