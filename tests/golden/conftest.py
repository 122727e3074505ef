"""The option that rewrites the golden files."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`: write the current output, and delete files that are no longer written."""
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files")
