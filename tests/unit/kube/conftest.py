"""Certificates for the scripted API servers."""

from pathlib import Path

import pytest

from tools.real_parts.keys import Keys


@pytest.fixture(scope="session")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a CA, a server's certificate, and the certificates of two clients."""
    folder = tmp_path_factory.mktemp("kube") / "keys"
    made = Keys(folder)
    made.issue("server", "kube-apiserver")
    made.issue("ann", "ann")
    made.issue("bob", "bob")
    return folder
