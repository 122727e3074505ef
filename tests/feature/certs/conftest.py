"""Fixtures of the unit tests of certificates, for use here."""

from tests.unit.certs.conftest import authority, now, state

__all__ = ["authority", "now", "state"]
