"""The option that rewrites the golden files."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`: write what the code makes now, and delete files that it makes no more."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
