"""What a pod's annotation tells the node: all of it is understood, or none."""

import pytest

from meshwright.agent.interception.options import read
from meshwright.agent.interception.settings import Family, Interception, InterceptionError
from meshwright.mesh.names import InterfaceName
from meshwright.mesh.workload import Capture


def test_what_is_not_said_is_as_without_rules_for_it() -> None:
    """But the proxy's user must be said."""
    assert read("--uid 1500") == Interception(inbound_excluded=())
    found = read("--uid 1500 --capture tproxy --ipv6 --exclude-inbound-ports 15020")
    assert found == Interception(capture=Capture.TPROXY, families=frozenset(Family))
    found = read("--uid 1500 --exclude-interfaces eth1,net+")
    names = (InterfaceName("eth1"), InterfaceName("net+"))
    assert found == Interception(inbound_excluded=(), interfaces_excluded=names)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "--uid is '': must be the numeric ID of the user that runs the proxy"),
        ("--uid root", "--uid is 'root': must be the numeric ID of the user that runs the proxy"),
        ("--uid 1 --uid 2", "unknown or repeated option '--uid': the options are"),
        (
            "--uid 1500 --exclude-cgroups a",
            "unknown or repeated option '--exclude-cgroups': the options are --capture",
        ),
        ("--uid 1500 15020", "unknown or repeated option '15020'"),
        ("--uid", "--uid needs a value"),
        ("--uid 4294967295", "uid is 4294967295: must be from 0"),
        ("--uid 1500 --capture none", "--capture is 'none': must be one of redirect, tproxy"),
        ("--uid 1500 --exclude-inbound-ports *", "--exclude-inbound-ports is '*'"),
        ("--uid 1500 --exclude-outbound-ports http", "--exclude-outbound-ports is 'http'"),
        ("--uid 1500 --include-outbound-ranges 10.0.0.1/8", "has host bits set"),
        ("--uid 1500 --exclude-interfaces *", "--exclude-interfaces is '*'"),
        ("--uid 1500 --exclude-interfaces eth1,lo", "the excluded interface is 'lo'"),
        ("--uid 1500 --exclude-outbound-ranges fd00::/8", "range fd00::/8 is IPv6, which is not captured"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, sentence: str) -> None:
    """No rule is left out because of a word that a newer injector knows."""
    with pytest.raises(InterceptionError) as refused:
        read(text)
    assert sentence in str(refused.value)
