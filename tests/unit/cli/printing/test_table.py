"""Tests of the tables of proxies, certificates and sources."""

import io

from rich.console import Console

from meshwright.cli.printing.certificates import certificates_tables
from meshwright.cli.printing.table import proxies_tables, sources_tables

PROXY = {"uuid": "u", "namespace": "n", "service": "s", "age": "5 min", "address": "1.2.3.4:5"}


def _printed(*tables: object) -> list[list[str]]:
    stream = io.StringIO()
    Console(file=stream, width=200).print(*tables)
    return [line.split() for line in stream.getvalue().splitlines()]


def test_proxy_in_sync_has_one_word() -> None:
    """A proxy that is not in sync shows the type and the reason."""
    proxies = [
        PROXY | {"state": "connected", "sync": {"cluster": "synced", "route": "synced"}},
        PROXY | {"state": "connected", "sync": {"cluster": "synced", "route": "nacked"}, "why": "bad"},
        PROXY | {"state": "expected", "sync": {}, "address": None},
        PROXY | {"state": "connected", "held": True, "sync": {"cluster": "asked"}, "why": "held"},
    ]
    assert _printed(*proxies_tables({"proxies": proxies})) == [
        ["PROXY", "SERVICE", "STATE", "FOR", "SYNC", "ADDRESS", "BEHIND"],
        ["u", "n/s", "connected", "5", "min", "synced", "1.2.3.4:5"],
        ["u", "n/s", "connected", "5", "min", "route", "nacked", "1.2.3.4:5", "bad"],
        ["u", "n/s", "expected", "5", "min", "-"],
        ["u", "n/s", "connected", "5", "min", "-", "1.2.3.4:5", "held"],
    ]


def test_pods_and_nodes_have_columns_if_there_are_any() -> None:
    """A proxy on a plain machine has a dash in these columns."""
    proxies = [
        PROXY | {"state": "connected", "pod": "n/web-1", "node": "worker-2", "sync": {"route": "synced"}},
        PROXY | {"state": "connected", "pod": None, "node": None, "sync": {"route": "synced"}},
    ]
    assert _printed(*proxies_tables({"proxies": proxies})) == [
        ["PROXY", "SERVICE", "POD", "NODE", "STATE", "FOR", "SYNC", "ADDRESS", "BEHIND"],
        ["u", "n/s", "n/web-1", "worker-2", "connected", "5", "min", "synced", "1.2.3.4:5"],
        ["u", "n/s", "-", "-", "connected", "5", "min", "synced", "1.2.3.4:5"],
    ]


def test_certificates_have_tables_by_kind() -> None:
    """Service certificates, proxy certificates and proxies without a certificate each have a table."""
    result = {
        "service_certificates": [
            {"identity": "n/a", "serial": "1", "not_after": "t", "dns_names": ["x", "y"]}
        ],
        "proxy_certificates": [{"cn": "u.s.n", "serial": "2", "state": "issued", "not_after": "t"}],
        "participants": [
            {"cn": "u.s.n", "lacks": ["never-connected"]},
            {"cn": "v.s.n", "lacks": ["no-certificate", "never-connected"]},
        ],
    }
    assert _printed(*certificates_tables(result)) == [
        ["IDENTITY", "SERIAL", "VALID", "UNTIL", "NAMES"],
        ["n/a", "1", "t", "x", "y"],
        ["PROXY", "SERIAL", "STATE", "VALID", "UNTIL", "LAST", "SEEN", "LACKS"],
        ["u.s.n", "2", "issued", "t", "never", "never-connected"],
        ["PROXY", "WITHOUT", "CERTIFICATE", "LACKS"],
        ["v.s.n", "no-certificate,", "never-connected"],
    ]


def test_certificates_without_a_server_are_one_table() -> None:
    """Without a server, service certificates and participants are unknown."""
    entry = {"cn": "u.s.n", "serial": "2", "state": "claimed", "not_after": "t", "last_seen": "s"}
    assert _printed(*certificates_tables({"service_certificates": None, "proxy_certificates": [entry]})) == [
        ["PROXY", "SERIAL", "STATE", "VALID", "UNTIL", "LAST", "SEEN"],
        ["u.s.n", "2", "claimed", "t", "s"],
    ]


def test_sources_are_shown_with_ages_counts_and_errors() -> None:
    """A source shows its ages, its counts, its held objects and its error with the start."""
    objects = {"good": 3, "stale": 2, "refused": 1}
    fresh = {"name": "directory", "age": "1 s", "event_age": "9 min", "objects": objects}
    idle = {"name": "idle", "objects": {"good": 0, "stale": 0, "refused": 0}}
    failing = {"name": "dns", "held": ["shop/db"], "error": "gone", "error_since": "t"}
    assert _printed(*sources_tables({"sources": [fresh, failing, idle]})) == [
        ["SOURCE", "READ", "CHANGED", "GOOD", "STALE", "REFUSED", "HELD", "BACK", "ERROR"],
        ["directory", "1", "s", "ago", "9", "min", "ago", "3", "2", "1"],
        ["dns", "never", "not", "yet", "shop/db", "gone", "(since", "t)"],
        ["idle", "-", "not", "yet", "0", "0", "0"],
    ]


def test_watches_have_a_table_of_their_own() -> None:
    """The watches of a source follow in a second table."""
    pods = {"name": "pods", "heard_age": "1 s", "event_age": "2 s", "list_age": "5 min"}
    counts = {"events": 7, "relists": 1}
    errors = {"errors": {"gone": 1, "timeout": 3}}
    smi = {"name": "s", "events": 0, "relists": 0, "error": "no", "error_since": "t"}
    source = {"name": "kubernetes", "objects": {}, "watches": [pods | counts | errors, smi]}
    assert _printed(*sources_tables({"sources": [source]}))[2:] == [
        ["WATCHED", "HEARD", "CHANGED", "LISTED", "EVENTS", "LISTED", "AGAIN", "ERRORS", "ERROR"],
        ["pods", "1", "s", "ago", "2", "s", "ago", "5", "min", "ago", "7", "1", "1", "gone,", "3", "timeout"],
        ["s", "never", "not", "yet", "never", "0", "0", "no", "(since", "t)"],
    ]
