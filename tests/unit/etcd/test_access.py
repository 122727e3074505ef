"""Tests of the access to etcd: endpoints, files and users; no secret is ever shown."""

from pathlib import Path

import pytest

from meshwright.etcd.access import Access, Endpoint, TlsFiles, User
from meshwright.etcd.errors import AccessError

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
    """The error has the path and the reason; contents of TLS files are not in the repr."""
    path = tmp_path / "missing"
    with pytest.raises(AccessError, match=f"^{path} cannot be read: No such file or directory$"):
        Access((TLS,), user_file=path).user()
    with pytest.raises(AccessError, match=f"^{path} cannot be read: No such file or directory$"):
        Access((TLS,), TlsFiles(path, path, path)).tls_contents()
    path.write_bytes(b"secret")
    assert "secret" not in repr(Access((TLS,), TlsFiles(None, path, path)).tls_contents())
