"""The server, and the sidecars that reject what they are told to."""

from tests.feature.rejection.conftest import join, serve

__all__ = ["join", "serve"]
