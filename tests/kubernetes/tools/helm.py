"""The Helm program, with a kubeconfig or without; its folders are those of the tests."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.tools import libyaml
from tools.real_parts.building import program
from tools.real_parts.parts import HELM

CHART: Final = Path(__file__).parents[3] / "deploy" / "chart" / "meshwright"


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm with a separate home; `enter` is a command prefix if the API is in another network."""

    home: Path
    kubeconfig: Path | None = None
    enter: tuple[str, ...] = ()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run Helm to its end."""
        at = [] if self.kubeconfig is None else [f"--kubeconfig={self.kubeconfig}"]
        return subprocess.run(
            [*self.enter, str(program(HELM)), *words, *at],
            env={"HOME": str(self.home), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def __call__(self, *words: str) -> str:
        """Return Helm's output; the command must not fail."""
        done = self.run(*words)
        assert done.returncode == 0, f"helm {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout


def objects(text: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return objects by kind and name. YAML within ConfigMaps is parsed, because it has many equal forms."""
    result = [item for item in libyaml.load_all(text) if item is not None]
    for item in result:
        if item["kind"] == "ConfigMap":
            item["data"] = {name: libyaml.load(value) for name, value in item["data"].items()}
    named = {(item["kind"], item["metadata"]["name"]): item for item in result}
    assert len(named) == len(result)
    return named
