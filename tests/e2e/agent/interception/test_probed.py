"""`meshwright intercept --probe`: whether rules are in force, seen by a user without any right."""

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
    """Return what the proxy's user sees there."""
    return workload.do(lambda: not_led(wanted), PROXY_UID)


def test_each_family_is_led_only_with_its_rules() -> None:
    """With none of them no connection is; rules that leave a port out are seen by another port."""
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


def test_tproxy_is_seen_although_nobody_without_rights_is_given_its_connections() -> None:
    """Without its rules they are refused."""
    wanted = Interception(capture=Capture.TPROXY)
    with pair() as (workload, _):
        assert seen(workload, wanted) != ""
        workload.do(lambda: put(wanted))
        assert seen(workload, wanted) == ""


def test_a_pod_without_a_network_is_no_yes() -> None:
    """Nothing can be seen there."""
    with (
        machine() as made,
        pytest.raises(
            InterceptionError,
            match="this machine has only loopback addresses, so the interception cannot be tested",
        ),
    ):
        seen(made, Interception())


def test_the_command_waits_for_the_rules_and_says_what_is_missing() -> None:
    """It runs as the proxy's user, without any capability."""
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
