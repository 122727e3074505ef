"""The whole server in this process, as in the tests of identity."""

from tests.feature.identity.conftest import serve

__all__ = ["serve"]
