"""Tests of generated units with systemd's own tools."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from meshwright.cli.main import app
from tests.tools.command_runner import CliRunner
from tests.unit.cli.commands.test_unit import ADS, EXAMPLES, PROGRAM

VARIANTS = {
    **EXAMPLES,
    "low.service": ("serve", "--", "--ads-address", "0.0.0.0:443", "--set", "quiet_seconds=0.2"),
    "cluster.service": ("serve", "--", "--kubernetes", "--kubeconfig", "/etc/meshwright/kube config"),
    "most.service": ("agent", "--low-ports", "--tproxy", "--", *ADS, "--hosts-file", "/etc/hosts"),
}
WORST = 3.0


def unit(which: str, *arguments: str) -> str:
    """Return a generated unit."""
    return CliRunner().invoke(app, ("unit", which, "--program", PROGRAM, *arguments)).stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="it needs systemd-analyze")
def test_systemd_verifies_every_unit_and_its_confinement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`systemd-analyze` finds a low exposure level and no error.

    Keys that an older release does not know are ignored.
    """
    monkeypatch.delenv("MESHWRIGHT_ENVOY", raising=False)
    paths = [tmp_path / name for name in VARIANTS]
    for path in paths:
        text = unit(*VARIANTS[path.name])
        # systemd looks for the programs of a unit, which need not be installed here.
        path.write_text(
            re.sub(r"/(opt|bin)/\S+", "/bin/sh", text).replace("User=meshwright-proxy", "User=root")
        )
    done = subprocess.run(["systemd-analyze", "verify", *paths], capture_output=True, text=True, check=False)
    lines = [line for line in done.stderr.splitlines() if str(tmp_path) in line or ".service:" in line]
    assert [
        line for line in lines if not re.search(r"Unknown key.* 'Restart(Steps|MaxDelaySec)'", line)
    ] == []
    for path in paths:
        path.write_text(unit(*VARIANTS[path.name]))
        words = ("systemd-analyze", "security", "--offline=true", "--no-pager", str(path))
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        match = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
        assert match is not None
        assert float(match[1]) <= WORST, done.stdout
