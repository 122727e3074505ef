"""Who listens, as the kernel shows it, and what is wrong with that."""

from dataclasses import replace

from agent.interception.owners import Owner, complaint, owners, strangers
from agent.interception.settings import Interception

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:3A99 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1500        0 4711 1 0 100 0
   1: 0100007F:3A9B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0
   2: 0100007F:3A9B 0100007F:D431 01 00000000:00000000 00:00000000 00000000     7        0 4713 1 0 100 0
"""
WANTED = Interception()


def test_listeners_are_read() -> None:
    """Ports are hexadecimal; what is connected does not listen."""
    assert owners(TABLE) == (Owner(15001, 1500, 4711), Owner(15003, 0, 4712))
    assert owners("") == ()


def test_only_ports_that_traffic_is_led_to_matter() -> None:
    """And only another user."""
    found = owners(TABLE)
    assert strangers(found, WANTED) == (Owner(15003, 0, 4712),)
    assert strangers(found, replace(WANTED, inbound=False)) == ()
    assert strangers(found, replace(WANTED, inbound_port=15008)) == ()
    assert strangers(found, replace(WANTED, uid=0)) == (Owner(15001, 1500, 4711),)


def test_who_it_is_and_what_to_do_is_said() -> None:
    """The program where it can be seen."""
    said = complaint(Owner(15003, 0, 1), WANTED, "envoy (pid 12)")
    assert said.startswith(
        "port 15003, to which inbound traffic is led, is that of envoy (pid 12), which runs as "
    )
    assert "is that of a program as user root (0), and" in complaint(Owner(15003, 0, 1), WANTED)
