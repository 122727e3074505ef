"""Tests of TLS contents: unusable files are named, instead of given to gRPC, which may end the process."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from meshwright.admin.spans.export import collector_tls
from meshwright.agent.credentials import CredentialsError, tls_contents
from meshwright.agent.enrolment import client
from meshwright.agent.reach.client import ask
from meshwright.mesh.host_port import HostPort
from meshwright.tls.contents import TlsContents, TlsFiles, UnusableTlsError
from tests.tools.deadline import HANG_SECONDS
from tests.unit.agent.issued_credentials import write_credentials

NOBODY = HostPort("127.0.0.1", 1)
PAIR = r"proxy.pem and \S+proxy.key cannot be used: expected a certificate in PEM and its private key"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a directory with the three files of a proxy."""
    write_credentials(tmp_path / "state", tmp_path / "proxy")
    return tmp_path / "proxy"


def emptied(file: Path, other: Path) -> None:
    """Empty a file, as a program does that opens the file for writing."""
    file.write_bytes(b"")


def cut(file: Path, other: Path) -> None:
    """Cut a file in the middle."""
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def mixed(file: Path, other: Path) -> None:
    """Replace a file by the one of another proxy, as in the middle of a renewal."""
    file.write_bytes((other / file.name).read_bytes())


DAMAGES = [emptied, cut, mixed]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["proxy.key", "proxy.pem"])
async def test_agent_names_files_that_do_not_fit(
    files: Path, tmp_path: Path, name: str, damage: Callable[[Path, Path], None]
) -> None:
    """Renewal, the questions for roots, reports of ejections and the reach check all refuse the files."""
    write_credentials(tmp_path / "other-state", tmp_path / "other", "v.s.n")
    roots = (files / "ca.pem").read_bytes()
    damage(files / name, tmp_path / "other")
    for request in (
        lambda: client.renew(NOBODY, "ads", roots, b"csr", files),
        lambda: client.trust(NOBODY, "ads", roots, "digest", files),
        lambda: client.eject(NOBODY, "ads", roots, files, ()),
    ):
        with pytest.raises(CredentialsError, match=PAIR):
            request()
    with pytest.raises(CredentialsError, match=PAIR):
        await ask(NOBODY, files, "ads", 1.0)


@pytest.mark.parametrize("damage", [emptied, cut])
async def test_unusable_roots_are_named(
    files: Path, tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    """The roots of a joining agent are no file; those of the others are."""
    damage(files / "ca.pem", files)
    with pytest.raises(CredentialsError, match=r"^the content with the CA certificates cannot be used"):
        client.join(NOBODY, "ads", (files / "ca.pem").read_bytes(), b"csr", "join-token", b"token")
    with pytest.raises(CredentialsError, match=r"ca.pem cannot be used: expected CA certificates in PEM$"):
        await ask(NOBODY, files, "ads", 1.0)
    with pytest.raises(UnusableTlsError, match=r"ca.pem cannot be used: expected CA certificates in PEM$"):
        collector_tls(files / "ca.pem")


def test_usable_files_are_read(files: Path) -> None:
    """Comments in any encoding are permitted between CA certificates; errors and reprs show no content."""
    ca = files / "ca.pem"
    ca.write_bytes("# Autorité\n".encode() + ca.read_bytes())
    contents = tls_contents(files)
    assert (contents.ca, contents.key) == (ca.read_bytes(), (files / "proxy.key").read_bytes())
    assert "PRIVATE" not in repr(contents)
    assert TlsContents.read(contents.files, contents) is contents


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The error has the path and the reason."""
    path = tmp_path / "none"
    with pytest.raises(UnusableTlsError, match=f"^{path} cannot be read: No such file or directory$"):
        TlsContents.read(TlsFiles(ca=path))


def test_grpc_ends_the_process_for_an_empty_key(files: Path) -> None:
    """This is why the contents are checked. Without this end the package would not be needed."""
    program = (
        "import grpc, pathlib, sys; chain = pathlib.Path(sys.argv[1]).read_bytes();"
        "grpc.secure_channel('127.0.0.1:1', grpc.ssl_channel_credentials(chain, b'', chain))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(files / "proxy.pem")],
        capture_output=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert ended.returncode < 0
