"""Tests of `meshwright check` for the CA of a server that shares its state with others."""

from datetime import UTC, datetime
from pathlib import Path

from certs.state.shared_mark import SharedMesh, write_mark
from meshwright.cli.checking.judgements.check import Check
from meshwright.cli.checking.server.paths import ServerPaths, authority

NOW = datetime(2031, 5, 6, tzinfo=UTC)


def test_ca_in_the_store_is_not_missing_in_the_directory(tmp_path: Path) -> None:
    """Without the mark of a shared store, an empty directory has no CA yet."""
    paths = ServerPaths(tmp_path / "state", None)
    assert authority(paths, NOW) == Check.warning(
        "CA", f"{paths.state} does not have a CA yet", "the first start creates one"
    )
    write_mark(paths.state, SharedMesh("5f2c8a", "ab12cd"))
    assert authority(paths, NOW) == Check.ok("CA", "the CA ab12cd is in the store of several servers")
