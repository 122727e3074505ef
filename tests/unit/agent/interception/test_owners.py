"""Tests of the owners of listening sockets, as the kernel shows them, and of the resulting messages."""

import os
import socket
from dataclasses import replace
from pathlib import Path

from meshwright.agent.interception.owners import complaint, complaints, strangers
from meshwright.agent.interception.settings import Interception
from meshwright.agent.sockets import Owner, owners
from meshwright.mesh.names import IpAddress

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:3A99 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1500        0 4711 1 0 100 0
   1: 0100007F:3A9B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0
   2: 0100007F:3A9B 0100007F:D431 01 00000000:00000000 00:00000000 00000000     7        0 4713 1 0 100 0
"""
TABLE6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 00000000000000000000000001000000:3A99 00000000000000000000000000000000:0000 0A 00000000:00000000 \
00:00000000 00000000  1500        0 4714 1 0 100 0
   1: 0000000000000000FFFF00000100007F:3A9B 00000000000000000000000000000000:0000 0A 00000000:00000000 \
00:00000000 00000000  1500        0 4715 1 0 100 0
"""
EVERYWHERE = Owner(15001, 1500, 4711, IpAddress("0.0.0.0"))
LOOPBACK = Owner(15003, 0, 4712, IpAddress("127.0.0.1"))
WANTED = Interception()


def test_listening_sockets_are_read_with_their_owner() -> None:
    """Hexadecimal ports and addresses are read; connected sockets are skipped."""
    assert owners(TABLE) == (EVERYWHERE, LOOPBACK)
    assert owners("") == ()


def test_only_other_users_at_redirected_ports_are_strangers() -> None:
    """Only a port to which traffic is redirected, and another user than the proxy's, counts."""
    result = owners(TABLE)
    assert strangers(result, WANTED) == (LOOPBACK,)
    assert strangers(result, replace(WANTED, inbound=False)) == ()
    assert strangers(result, replace(WANTED, inbound_port=15008)) == ()
    assert strangers(result, replace(WANTED, uid=0)) == (EVERYWHERE,)


def test_message_about_a_stranger_names_port_program_and_user() -> None:
    """The message names the program if it is known, and otherwise the user."""
    text = complaint(Owner(15003, 0, 1), "inbound", 1500, "envoy (pid 12)")
    assert text.startswith(
        "port 15003, to which inbound traffic is redirected, belongs to envoy (pid 12), running as "
    )
    assert "belongs to a program as user root (0), but" in complaint(Owner(15003, 0, 1), "inbound", 1500)


def test_socket_takes_calls_to_its_own_address_or_all() -> None:
    """Addresses of both families are read, and an IPv4-mapped address is IPv4.

    A wildcard socket takes calls to all addresses.
    """
    (six, mapped) = owners(TABLE6)
    assert (six.address, mapped.address) == ("::1", "127.0.0.1")
    assert six.takes("::1")
    assert not six.takes("127.0.0.1")
    assert mapped.takes("127.0.0.1")
    assert EVERYWHERE.takes("192.0.2.1")
    assert LOOPBACK.takes("0.0.0.0")


def test_cut_program_name_is_shown_as_text() -> None:
    """The kernel cuts a name to 15 bytes, so a partial character and control characters are replaced."""
    name = Path("/proc/self/comm")
    before = name.read_bytes()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        wanted = Interception(uid=os.geteuid() + 1, inbound_port=listening.getsockname()[1])
        try:
            name.write_bytes(b"\x1b[2Jproxy\xc3")
            (text,) = complaints(wanted)
        finally:
            name.write_bytes(before.rstrip())
    assert f"belongs to \ufffd[2Jproxy\ufffd (pid {os.getpid()})" in text
