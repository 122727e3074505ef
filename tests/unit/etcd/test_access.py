"""Tests of the access to etcd: endpoints, files and users; no secret is ever shown."""

import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from meshwright.etcd.access import Access, Endpoint, User
from meshwright.etcd.errors import AccessError
from meshwright.tls.contents import TlsContents, TlsFiles
from tools.real_parts.keys import Keys

TLS = Endpoint.parse("https://10.0.0.1:2379")
PLAIN = Endpoint.parse("http://127.0.0.1:2379")


@pytest.mark.parametrize(
    ("text", "endpoint", "shown"),
    [
        ("https://10.0.0.1:2379", Endpoint("10.0.0.1", 2379, tls=True), "https://10.0.0.1:2379"),
        ("https://etcd.example/", Endpoint("etcd.example", 2379, tls=True), "https://etcd.example:2379"),
        ("https://[fd00::1]:4001", Endpoint("fd00::1", 4001, tls=True), "https://[fd00::1]:4001"),
        ("http://127.0.0.1:1", Endpoint("127.0.0.1", 1, tls=False), "http://127.0.0.1:1"),
        ("http://[::1]", Endpoint("::1", 2379, tls=False), "http://[::1]:2379"),
        ("http://localhost", Endpoint("localhost", 2379, tls=False), "http://localhost:2379"),
    ],
)
def test_endpoint_is_a_url(text: str, endpoint: Endpoint, shown: str) -> None:
    """The port is 2379 by default, and an endpoint is shown as a URL."""
    assert Endpoint.parse(text) == endpoint
    assert str(endpoint) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "10.0.0.1:2379",
        "ftp://a",
        "https://",
        "https://a/path",
        "https://a?x=1",
        "https://a:x",
        "https://[",
    ],
)
def test_other_text_is_no_endpoint(text: str) -> None:
    """The error shows the text and an example."""
    with pytest.raises(AccessError) as caught:
        Endpoint.parse(text)
    assert repr(text) in str(caught.value)
    assert "https://10.0.0.1:2379" in str(caught.value)


@pytest.mark.parametrize("host", ["10.0.0.1", "etcd.example", "0.0.0.0", "[fd00::1]", "localhost.example"])
def test_plain_text_is_for_loopback_only(host: str) -> None:
    """Records and passwords never cross a network in plain text."""
    with pytest.raises(AccessError) as caught:
        Endpoint.parse(f"http://{host}:2379")
    assert str(caught.value) == (
        f"endpoint 'http://{host}:2379' of etcd is plain text, which is permitted on loopback only: use https"
    )


@pytest.mark.parametrize(
    "text",
    [
        "https://mesh:secret@10.0.0.1:2379",
        "https://mesh:secret@10.0.0.1:port",
        "https://mesh:secret@[10.0.0.1",
        "mesh:secret@10.0.0.1:2379",
        "http://mesh:secret@10.0.0.1/path",
    ],
)
def test_user_in_an_endpoint_is_refused_and_not_shown(text: str) -> None:
    """A URL is shown in logs, so that it may not have a password, whatever else is wrong with it."""
    with pytest.raises(AccessError) as caught:
        Endpoint.parse(text)
    assert str(caught.value) == (
        "an endpoint of etcd has a user: put user and password into a file, and use "
        "for example https://10.0.0.1:2379"
    )


def test_incomplete_credentials_are_refused() -> None:
    """Whoever reaches a store could write without credentials, so that TLS alone is not enough."""
    path = Path("client.pem")
    with pytest.raises(AccessError, match="no endpoint"):
        Access(())
    for files in (TlsFiles(certificate=path), TlsFiles(key=path)):
        with pytest.raises(AccessError, match="needs both files"):
            Access((TLS,), files)
    for files in (TlsFiles(), TlsFiles(ca=path)):
        with pytest.raises(AccessError, match="a client certificate, or with a file of user and password"):
            Access((PLAIN, TLS), files)
    assert Access((PLAIN,)).user() is None
    assert Access((TLS,), user_file=path).user_file == path
    assert Access((TLS,), TlsFiles(certificate=path, key=path)).user_file is None


def test_user_is_one_line_of_a_file(tmp_path: Path) -> None:
    """A password may have colons, and neither errors nor reprs show one."""
    path = tmp_path / "user"
    access = Access((TLS,), user_file=path)
    path.write_text("mesh:a:b \n", "utf-8")
    assert access.user() == User("mesh", "a:b")
    assert "a:b" not in repr((access, access.user()))
    for text in ("", "secret", ":secret", "mesh:", "mesh:secret\nother:secret"):
        path.write_text(text, "utf-8")
        with pytest.raises(AccessError) as caught:
            access.user()
        assert str(caught.value) == f"{path}: expected one line, USER:PASSWORD"


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The error has the path and the reason."""
    path = tmp_path / "missing"
    with pytest.raises(AccessError, match=f"^{path} cannot be read: No such file or directory$"):
        Access((TLS,), user_file=path).user()
    with pytest.raises(AccessError, match=f"^{path} cannot be read: No such file or directory$"):
        Access((TLS,), TlsFiles(path, path, path)).tls_contents()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    """Return a CA with two clients."""
    made = Keys(tmp_path_factory.mktemp("etcd") / "keys")
    made.issue("client", "meshwright")
    made.issue("other", "other")
    return made


def test_usable_files_are_read(keys: Keys, tmp_path: Path) -> None:
    """The contents are those of the files."""
    ca, certificate, key = files = [keys.folder / name for name in ("ca.crt", "client.crt", "client.key")]
    expected = TlsContents(ca.read_bytes(), certificate.read_bytes(), key.read_bytes())
    assert Access((TLS,), TlsFiles(*files)).tls_contents() == expected


@pytest.mark.parametrize("content", [b"", b"-----BEGIN CERTIFICATE-----\nMIIB", b"\xff\xfe"])
@pytest.mark.parametrize("name", ["ca.crt", "client.crt", "client.key"])
def test_file_that_is_half_written_is_named(keys: Keys, tmp_path: Path, name: str, content: bytes) -> None:
    """GRPC would end the process for an empty certificate or key, as while an operator replaces the files."""
    folder = tmp_path / "files"
    shutil.copytree(keys.folder, folder)
    (folder / name).write_bytes(content)
    ca, certificate, key = (folder / item for item in ("ca.crt", "client.crt", "client.key"))
    with pytest.raises(AccessError) as caught:
        Access((TLS,), TlsFiles(ca, certificate, key)).tls_contents()
    assert str(caught.value) == (
        f"{ca} cannot be used: expected CA certificates in PEM"
        if name == "ca.crt"
        else f"{certificate} and {key} cannot be used: expected a certificate in PEM and its private key, "
        "which is not encrypted"
    )


def test_key_of_another_certificate_is_refused(keys: Keys) -> None:
    """So is an encrypted key, without a question on the terminal."""
    certificate, key = keys.folder / "client.crt", keys.folder / "other.key"
    encrypted = keys.folder / "encrypted.key"
    loaded = serialization.load_pem_private_key((keys.folder / "client.key").read_bytes(), None)
    encrypted.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"passphrase"),
        )
    )
    for path in (key, encrypted):
        with pytest.raises(AccessError, match=r"its private key, which is not encrypted$"):
            Access((TLS,), TlsFiles(None, certificate, path)).tls_contents()
