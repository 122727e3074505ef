"""Only hosts we know are served."""

import pytest

from admin.http.guard import host_of, permitted


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:9092", "localhost"),
        ("127.0.0.1:9092", "127.0.0.1"),
        ("[::1]:9092", "::1"),
        ("[::1]", "::1"),
        ("", ""),
    ],
)
def test_the_host_is_read_without_its_port(header: str, host: str) -> None:
    """Names, addresses and bracketed addresses."""
    assert host_of(header) == host


def test_a_name_of_another_site_is_refused_even_if_it_looks_like_ours() -> None:
    """Rebinding: the browser sends the attacker's name, whatever it resolves to."""
    headers = ("evil.example:9092", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost@evil")
    assert [permitted(header, ()) for header in headers] == [False] * 5


def test_configured_hosts_are_served() -> None:
    """What the operator names is served under any case."""
    assert permitted("Mesh.Example:9092", ("mesh.example",))
