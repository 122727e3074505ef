"""Test of the commands and manifests of gateways.md, run exactly as written, under a separate systemd.

The control plane is on the same machine, under the name `control.example`, and has the mesh directory of the
demo. A web server with the demo's sidecar stands for the bookstore.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from demo.manifests import apply, prepare
from demo.topology import STORE_V1, ExplicitAddresses
from meshwright.cli.units import AGENT_UNIT
from tests.e2e.systemd import PROXY, Systemd, booted, dropped_in, missing_for_systemd

pytestmark = [
    pytest.mark.envoy,
    pytest.mark.root,
    pytest.mark.timeout(240),
    pytest.mark.skipif(bool(missing_for_systemd()), reason=missing_for_systemd()),
]
ROOT: Final = Path(__file__).parents[2]
ADDRESS: Final = "192.0.2.10"
"""The address of the Workload on the page."""
ADDRESSES: Final = ExplicitAddresses("127.20")
PROGRAM: Final = "/opt/meshwright/bin/meshwright"
POLICY: Final = {"access.yaml": "access/traffic-access-v1.yaml", "mesh-config.yaml": "config/closed.yaml"}
_SERVE = """
meshwright serve --mesh /srv/mesh --state /var/lib/meshwright --set enrolment_address=0.0.0.0:15130 \\
    --set renewal_address=0.0.0.0:15131 >/srv/server.log 2>&1 &
curl -fs --retry 60 --retry-all-errors --retry-delay 1 http://127.0.0.1:9091/healthz/ready
"""
_STORE = f"""
mkdir -p store/buy-a-book && touch store/buy-a-book/new
python3 -m http.server -d store -b {ADDRESSES.application(STORE_V1)} 14001 >/dev/null 2>&1 &
meshwright certs issue-proxy --state /var/lib/meshwright --uuid {STORE_V1.uuid} --service bookstore \\
    --namespace bookstore --out store-files
meshwright agent --credentials store-files --ads 127.0.0.1:15128 --run /run/store \\
    --envoy /opt/envoy/bin/envoy --status 127.0.0.1:15030 >/srv/store.log 2>&1 &
meshwright agent wait --status 127.0.0.1:15030
"""


def _blocks(section: str, language: str) -> list[str]:
    """Return the blocks of a language in a section of the page; the introduction is the section ""."""
    text = (ROOT / "docs" / "policy" / "gateways.md").read_text("utf-8")
    there = text.partition(f"\n## {section}\n")[2] if section else text
    return re.findall(rf"^```{language}\n(.*?)^```$", there.partition("\n## ")[0], re.MULTILINE | re.DOTALL)


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory, envoy: str) -> Iterator[Systemd]:
    """Return a machine with the mesh directory of the demo and of the page."""
    folder = tmp_path_factory.mktemp("machine")
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)  # what runs inside is other users
    with booted(
        folder, {f"{AGENT_UNIT}.d/here.conf": dropped_in(AGENT_UNIT)}, envoy, with_user=False
    ) as systemd:
        mesh = folder / "srv" / "mesh"
        prepare(mesh, ADDRESSES)
        apply(mesh, POLICY)
        (mesh / "edge.yaml").write_text(
            "---\n".join((*_blocks("", "yaml"), *_blocks("On a machine", "yaml")))
        )
        systemd.run("ip", "address", "add", ADDRESS, "dev", "lo")
        systemd.run("sh", "-c", "echo 127.0.0.1 control.example >> /etc/hosts")
        yield systemd


def _type(machine: Systemd, block: str) -> str:
    """Run commands as root in /srv, with `meshwright` in the path; stop at the first error."""
    path = "PATH=/opt/meshwright/bin:$PATH; cd /srv; exec 2>&1; "
    placed = re.sub(r"(meshwright unit \w+ --low-ports) -- ", rf"\1 --program {PROGRAM} -- ", block)
    return machine.run("bash", "-e", "-c", path + placed)


def test_commands_of_the_page_open_the_bookstore_to_a_client_outside(machine: Systemd) -> None:
    """The manifests have no problem, the unit starts at port 443, and `curl` prints what the page shows."""
    (secret,) = _blocks("", "sh")
    token, joined = _blocks("On a machine", "sh")
    (shown,) = _blocks("On a machine", "console")
    command, _, printed = shown.removeprefix("$ ").partition("\n")
    _type(machine, secret + "cp books-example.yaml mesh/")
    assert _type(machine, "meshwright lint mesh") == "no problems found\n"
    _type(machine, _SERVE + _STORE + token)
    assert "public-1.public.bookstore is ready" in _type(machine, joined)
    unit = machine.shown(AGENT_UNIT)
    assert (unit["ActiveState"], unit["User"]) == ("active", PROXY[0])
    assert _type(machine, command) == printed
    assert _type(machine, command.replace("buy-a-book/new", "books-bought")) == "403\n"
