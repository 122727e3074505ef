"""Tests of the commands in docs/policy/osm.md that explain external callers, with the objects there."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from tests.unit.cli.commands.test_explain import Run

PAGE: Final = (Path(__file__).parents[4] / "docs" / "policy" / "osm.md").read_text("utf-8")
SECTION: Final = PAGE.partition("\n## IngressBackend\n")[2].partition("\n## ")[0]
EXAMPLES: Final = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
TYPED: Final = re.findall(r"^\$ meshwright (explain .*)$", SECTION, re.MULTILINE)
BOOKSTORE: Final = """\
apiVersion: v1
kind: Service
metadata: {name: bookstore, namespace: bookstore}
spec: {selector: {app: bookstore}, ports: [{name: http, port: 14001}]}
---
apiVersion: meshwright.dev/v1alpha1
kind: Workload
metadata: {name: bookstore, namespace: bookstore, labels: {app: bookstore}}
spec:
  {serviceAccount: bookstore, service: bookstore, uuid: one, address: 10.0.0.5, ports: [{port: 14001}],
   interception: {capture: redirect}}
"""


def test_page_has_two_explain_commands() -> None:
    """The section has one command for a caller by address and one for a caller by certificate."""
    assert len(TYPED) == 2


@pytest.mark.parametrize(
    ("command", "protocol", "status"),
    [(TYPED[0], "http", 0), (TYPED[1], "https", 0), (TYPED[0], "https", 1), (TYPED[1], "http", 1)],
)
def test_documented_command_allows_only_its_kind_of_caller(
    run: Run, tmp_path: Path, command: str, protocol: str, status: int
) -> None:
    """The object for plain text allows the caller by address.

    The one for certificates allows the caller by name.
    """
    (tmp_path / "examples").mkdir()
    shown = [
        example
        for example in EXAMPLES
        if f"protocol: {protocol}}}" in example or "kind: EndpointSlice" in example
    ]
    assert len(shown) == 2, protocol
    (tmp_path / "examples" / "mesh.yaml").write_text("---\n".join([BOOKSTORE, *shown]))
    done = run(*shlex.split(command))
    assert (done.returncode, done.stderr) == (status, ""), done
    assert "IngressBackend bookstore/bookstore" in done.stdout
