"""Fixtures of a small mesh, and of a reading of this mesh."""

from tests.unit.admin.conftest import reading, source, view

__all__ = ("reading", "source", "view")
