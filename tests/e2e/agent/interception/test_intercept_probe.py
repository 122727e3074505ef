"""Tests of `meshwright intercept --probe`: it detects rules in force without any privilege."""

import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from meshwright.agent.interception.iptables import put
from meshwright.agent.interception.ports import PortRange
from meshwright.agent.interception.probing import not_led
from meshwright.agent.interception.settings import Family, Interception, InterceptionError
from meshwright.mesh.workload import Capture
from tests.e2e.agent.conftest import missing_for_namespaces
from tests.e2e.agent.machines import PROXY_UID, WORKLOAD, Machine, machine, pair

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(bool(missing_for_namespaces()), reason=missing_for_namespaces() or "it can run"),
]
BOTH = Interception(families=frozenset(Family))


def seen(workload: Machine, wanted: Interception) -> str:
    """Return the probe's result for the proxy's user."""
    return workload.do(lambda: not_led(wanted), PROXY_UID)


def test_probe_detects_missing_rules_for_each_family() -> None:
    """Each family needs its own rules. Rules that exclude a port are detected at another port."""
    narrow = replace(BOTH, inbound_excluded=(PortRange(2, 65535),))
    with pair() as (workload, _):
        v4, v6 = WORKLOAD.values()
        assert seen(workload, BOTH) == f"a test connection to {v4} was not redirected to port 15003"
        workload.do(lambda: put(Interception()))
        assert seen(workload, Interception()) == ""
        assert seen(workload, BOTH) == f"a test connection to {v6} was not redirected to port 15003"
        workload.do(lambda: put(BOTH))
        assert seen(workload, BOTH) == ""
        workload.do(lambda: put(narrow))
        assert seen(workload, BOTH) != ""
        assert seen(workload, narrow) == ""
        workload.do(lambda: put(None))
        assert seen(workload, narrow) != ""


def test_probe_detects_tproxy_rules_without_privileges() -> None:
    """The rules are detected although an unprivileged process cannot accept the connections.

    Without rules, the probe reports it.
    """
    wanted = Interception(capture=Capture.TPROXY)
    with pair() as (workload, _):
        assert seen(workload, wanted) != ""
        workload.do(lambda: put(wanted))
        assert seen(workload, wanted) == ""


def test_probe_fails_on_a_machine_with_only_loopback_addresses() -> None:
    """The probe raises an error, because the interception cannot be tested there."""
    with (
        machine() as made,
        pytest.raises(
            InterceptionError,
            match="this machine has only loopback addresses, so the interception cannot be tested",
        ),
    ):
        seen(made, Interception())


def test_probe_command_waits_for_the_rules_and_reports_missing_ones() -> None:
    """The command runs as the proxy's user without any capability.

    It fails after its deadline with a next step, and succeeds when the rules are set in time.
    """
    command = (
        *("setpriv", "--reuid", str(PROXY_UID), "--regid", str(PROXY_UID), "--clear-groups"),
        *("--bounding-set", "-all", "--no-new-privs", sys.executable, "-m", "meshwright", "intercept"),
        "--probe",
    )
    with pair() as (workload, _):

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*workload.enter, *command, *words],
                env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)},
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )

        done = run("--seconds", "0")
        assert (done.returncode, done.stdout) == (1, "")
        assert "after 0 s a test connection to 10.250.0.1 was not redirected to port 15003" in done.stderr
        assert "check that meshwright-cni is ready on this node" in done.stderr
        late = threading.Timer(1, lambda: workload.do(lambda: put(Interception())))
        late.start()
        done = run("--seconds", "90")
        late.join()
        assert (done.returncode, done.stdout, done.stderr) == (0, "interception is in force\n", "")
