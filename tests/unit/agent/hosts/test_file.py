"""Tests of service names in a hosts file: from Envoy's listeners to lines of a shared file."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from meshwright.agent.envoy.listeners import Chain, Listener, listeners
from meshwright.agent.hosts.file import BEGIN, END, HostsFile, called, lines, with_block
from meshwright.mesh.names import IpAddress, Namespace, Port, ServiceName
from meshwright.mesh.service import Protocol, ServiceKey
from meshwright.sidecars.envoy.listeners.chain_names import called_service, outbound_chain

STORE = ServiceKey(Namespace("books"), ServiceName("store"))
NODES = ServiceKey(Namespace("data"), ServiceName("nodes"))
DUMP = {
    "configs": [
        {
            "active_state": {
                "listener": {
                    "name": "outbound-listener",
                    "address": {"socket_address": {"address": "0.0.0.0", "port_value": 15001}},
                    "filter_chains": [
                        {
                            "name": "outbound_books/store_80_http",
                            "filter_chain_match": {
                                "destination_port": 80,
                                "prefix_ranges": [{"address_prefix": "240.0.0.7", "prefix_len": 32}],
                            },
                        },
                        {"name": "outbound-egress-filter-chain"},
                    ],
                }
            }
        },
        {"warming_state": {"listener": {"name": "later"}}},
    ]
}


def test_active_listeners_are_read_with_their_filter_chains() -> None:
    """Listeners in force are read with their chains; warming ones are not."""
    assert listeners(DUMP) == (
        Listener(
            "outbound-listener",
            IpAddress("0.0.0.0"),
            15001,
            (
                Chain("outbound_books/store_80_http", 80, (IpAddress("240.0.0.7"),)),
                Chain("outbound-egress-filter-chain"),
            ),
        ),
    )
    assert listeners({"configs": "?"}) == ()


def test_service_is_read_from_the_name_of_a_filter_chain() -> None:
    """The name that the translation writes gives the service; other chains have no service."""
    for protocol in Protocol:
        assert called_service(outbound_chain(STORE, Port(80), protocol)) == STORE
    assert called_service("outbound-loop-filter-chain") is None
    assert called_service("inbound_books/store_80_http") is None


def test_hosts_lines_have_the_addresses_at_which_calls_are_taken() -> None:
    """All matched addresses are listed, or the first of a proxy's own listeners.

    Lines are sorted, and only the own namespace has short names.
    """
    intercepting = Listener(
        "outbound-listener",
        IpAddress("0.0.0.0"),
        15001,
        (
            Chain("outbound_data/nodes_80_tcp", 80, (IpAddress("10.0.0.2"), IpAddress("10.0.0.1"))),
            Chain("outbound_books/store_80_http", 80, (IpAddress("240.0.0.7"),)),
        ),
    )
    offered = tuple(
        Listener(f"outbound-listener|{at}|80", IpAddress(at), 80, (Chain("outbound_books/store_80_http"),))
        for at in ("127.0.0.3", "127.0.0.2")
    )

    result = called((intercepting,))
    assert result == (
        (STORE, (IpAddress("240.0.0.7"),)),
        (NODES, (IpAddress("10.0.0.1"), IpAddress("10.0.0.2"))),
    )
    assert called(offered) == ((STORE, (IpAddress("127.0.0.2"),)),)
    assert lines(result, Namespace("books"), "cluster.local") == (
        "240.0.0.7 store store.books store.books.svc store.books.svc.cluster.local",
        "10.0.0.1 nodes.data nodes.data.svc nodes.data.svc.cluster.local",
        "10.0.0.2 nodes.data nodes.data.svc nodes.data.svc.cluster.local",
    )


def test_other_lines_of_the_hosts_file_are_kept(tmp_path: Path) -> None:
    """The block is inserted, replaced and removed between other lines; an equal file is not written."""
    path = tmp_path / "hosts"
    path.write_text("127.0.0.1 localhost\n")
    file = HostsFile(path)

    assert file.put(("10.0.0.1 a",))
    assert path.read_text() == f"127.0.0.1 localhost\n{BEGIN}\n10.0.0.1 a\n{END}\n"
    path.write_text(path.read_text() + "10.9.9.9 theirs\n")
    assert file.put(("10.0.0.2 b",))
    assert not file.put(("10.0.0.2 b",))
    assert path.read_text() == f"127.0.0.1 localhost\n{BEGIN}\n10.0.0.2 b\n{END}\n10.9.9.9 theirs\n"
    assert file.put(())
    assert path.read_text() == "127.0.0.1 localhost\n10.9.9.9 theirs\n"


def test_hosts_block_without_its_end_removes_no_other_lines() -> None:
    """Without the end marker only the begin marker is removed. The lines after it may belong to others."""
    assert with_block(f"a\n{BEGIN}\nb\n", ()) == "a\nb\n"


@given(st.lists(st.text("ab# .", min_size=1)), st.lists(st.text("10. x", min_size=1)))
def test_removed_hosts_block_restores_the_file(before: list[str], ours: list[str]) -> None:
    """Inserting and removing a block gives the same file, for any lines."""
    text = "".join(f"{line}\n" for line in before)
    assert with_block(with_block(text, ours), ()) == text
