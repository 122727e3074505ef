"""Test of a server whose private keys are encrypted at rest."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from certs.keys.leaf import is_signed_by_bundle
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_identity import workload
from tests.feature.identity.test_root_change import ENROLLED, ROTATE, follower, quick, until

Serve = Callable[..., Awaitable[Any]]
__all__ = ("quick",)


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    """The file of a passphrase."""
    path = tmp_path / "passphrase"
    path.write_text("correct horse battery staple\n")
    path.chmod(0o600)
    return path


def readable(state: Path) -> list[str]:
    """Return the files of a directory that contain a readable private key or the passphrase."""
    files = [path for path in state.rglob("*") if path.is_file()]
    assert len(files) > 5
    return [
        file.name for file in files if b"PRIVATE KEY" in (result := file.read_bytes()) or b"horse" in result
    ]


async def test_sealed_server_rotates_its_root_without_a_readable_key(
    serve: Serve, passphrase: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At no stage of the rotation is a private key readable on disk or the passphrase in the log."""
    server = await serve(workload("one", host=1), **PORTS, key_passphrase_file=passphrase, log_level="debug")
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(follower(server, ENROLLED).running())
        first = one.chain
        assert readable(server.state) == []
        begun = await server.ask("POST", ROTATE, {})
        assert readable(server.state) == []
        await until(server, None)
        assert readable(server.state) == []
        assert is_signed_by_bundle(one.chain, one.mesh_roots)
        assert not is_signed_by_bundle(first, one.mesh_roots)
    assert (await server.ask("GET", ROTATE))["stage"] is None
    assert begun["stage"] == "trusting"
    written = capsys.readouterr()
    assert "horse" not in written.out + written.err
