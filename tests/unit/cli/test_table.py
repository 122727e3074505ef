"""Tables for people."""

import io

from rich.console import Console

from cli.table import certificates_tables, proxies_table

PROXY = {"uuid": "u", "namespace": "n", "service": "s", "since": "t", "address": "1.2.3.4:5"}


def _printed(*tables: object) -> list[list[str]]:
    stream = io.StringIO()
    Console(file=stream, width=200).print(*tables)
    return [line.split() for line in stream.getvalue().splitlines()]


def test_a_proxy_in_sync_is_one_word() -> None:
    """And one that is not says where."""
    table = proxies_table(
        [
            PROXY | {"state": "connected", "sync": {"cluster": "synced", "route": "synced"}},
            PROXY | {"state": "connected", "sync": {"cluster": "synced", "route": "nacked"}},
            PROXY | {"state": "expected", "sync": {}, "address": None},
        ]
    )
    assert _printed(table) == [
        ["PROXY", "SERVICE", "STATE", "SYNC", "ADDRESS", "SINCE"],
        ["u", "n/s", "connected", "synced", "1.2.3.4:5", "t"],
        ["u", "n/s", "connected", "route", "nacked", "1.2.3.4:5", "t"],
        ["u", "n/s", "expected", "-", "t"],
    ]


def test_certificates_are_two_tables() -> None:
    """Service certificates and proxy certificates."""
    found = {
        "service_certificates": [
            {"identity": "n/a", "serial": "1", "not_after": "t", "dns_names": ["x", "y"]}
        ],
        "proxy_certificates": [{"cn": "u.s.n", "serial": "2", "state": "issued", "not_after": "t"}],
    }
    assert _printed(*certificates_tables(found)) == [
        ["IDENTITY", "SERIAL", "VALID", "UNTIL", "NAMES"],
        ["n/a", "1", "t", "x", "y"],
        ["PROXY", "SERIAL", "STATE", "VALID", "UNTIL"],
        ["u.s.n", "2", "issued", "t"],
    ]
