"""Tests of the interception options in a pod's annotation."""

import pytest

from meshwright.agent.interception.options import read
from meshwright.agent.interception.settings import Family, Interception, InterceptionError
from meshwright.mesh.names import InterfaceName
from meshwright.mesh.workload import Capture


def test_missing_options_give_no_rules() -> None:
    """A missing option adds no rule; only the proxy's user is required."""
    assert read("--uid 1500") == Interception(inbound_excluded=())
    interception = read("--uid 1500 --capture tproxy --ipv6 --exclude-inbound-ports 15020")
    assert interception == Interception(capture=Capture.TPROXY, families=frozenset(Family))
    interception = read("--uid 1500 --exclude-interfaces eth1,net+")
    names = (InterfaceName("eth1"), InterfaceName("net+"))
    assert interception == Interception(inbound_excluded=(), interfaces_excluded=names)


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
def test_unknown_or_invalid_option_is_refused(text: str, sentence: str) -> None:
    """An unknown or invalid option refuses all options. A rule of a newer injector must not be dropped."""
    with pytest.raises(InterceptionError) as refused:
        read(text)
    assert sentence in str(refused.value)
