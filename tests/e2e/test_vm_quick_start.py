"""Test of the README's commands for a virtual machine, run exactly as written, under a separate systemd.

The control plane is on the same machine, under the name `control.example`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from meshwright.cli.units import AGENT_UNIT, INTERCEPT_UNIT
from tests.e2e.systemd import Systemd, booted, dropped_in, missing_for_systemd

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(240),
    pytest.mark.skipif(bool(missing_for_systemd()), reason=missing_for_systemd()),
]
ROOT = Path(__file__).parents[2]
ADDRESS = "192.0.2.17"
"""The machine's address in docs/examples/inventory.yaml."""
PROGRAM = "/opt/meshwright/bin/meshwright"
_APPLICATION = "python3 -m http.server 8080 >/dev/null 2>&1 &"


def _blocks() -> list[str]:
    """Return the two blocks of commands: for the control plane, and for the virtual machine."""
    text = (ROOT / "README.md").read_text("utf-8").partition("\n### Virtual machines\n")[2]
    return re.findall(r"^```sh\n(.*?)^```$", text.partition("\n##")[0], re.MULTILINE | re.DOTALL)


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory, envoy: str) -> Iterator[Systemd]:
    """Return a machine without the proxy's user and our units; /srv has the clone's docs."""
    folder = tmp_path_factory.mktemp("machine")
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)  # what runs inside is other users
    dropped = {f"{unit}.d/here.conf": dropped_in(unit) for unit in (AGENT_UNIT, INTERCEPT_UNIT)}
    with booted(folder, dropped, envoy, with_user=False) as systemd:
        (folder / "srv" / "docs").symlink_to(ROOT / "docs")
        systemd.run("ip", "address", "add", ADDRESS, "dev", "lo")
        systemd.run("sh", "-c", "echo 127.0.0.1 control.example >> /etc/hosts")
        yield systemd


def _type(machine: Systemd, block: str) -> str:
    """Run commands as root in /srv, with `meshwright` in the path; stop at the first error.

    Units name the program in /opt, because Python finds the place of this environment outside of it.
    """
    path = "PATH=/opt/meshwright/bin:$PATH; cd /srv; exec 2>&1; "
    quiet = block.replace(" &\n", " >/srv/server.log 2>&1 &\n")  # the caller reads until all have closed
    placed = re.sub(r"(meshwright unit \w+) -- ", rf"\1 --program {PROGRAM} -- ", quiet)
    return machine.run("bash", "-e", "-c", path + placed)


def test_vm_quick_start_joins_a_machine_whose_checks_pass(machine: Systemd) -> None:
    """The last command, `meshwright agent check`, prints only lines that are `ok`, and no command warns."""
    control, virtual = _blocks()
    _type(machine, control)
    machine.run("sh", "-c", _APPLICATION)
    printed = _type(machine, virtual)
    _, *rows = printed.partition("CHECK ")[2].splitlines()
    states = {row[:22].strip(): row.split("  ", 1)[1].split()[0] for row in rows if row.strip()}
    assert len(states) >= 10, printed
    assert set(states.values()) == {"ok"}, printed
    assert "warning" not in printed
