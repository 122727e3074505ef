"""What the unit tests of certificates share."""

from tests.unit.certs.conftest import authority, now, state

__all__ = ["authority", "now", "state"]
