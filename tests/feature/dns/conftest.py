"""Fixture of the whole server in this process, from the tests of identity."""

from tests.feature.identity.conftest import serve

__all__ = ["serve"]
