"""Tests of options that several commands share."""

from pathlib import Path

import pytest

from tests.unit.cli.commands.test_explain import Run


@pytest.mark.parametrize(
    "command",
    [("lint", "."), ("diff", "."), ("explain", "--mesh", ".", "--from", "a/b", "--to", "a/c:80")],
    ids=lambda command: command[0],
)
@pytest.mark.parametrize(
    "flag",
    ["--kubeconfig", "--context", "--namespaces", "--namespace-selector", "--control-plane-namespace"],
)
def test_cluster_option_without_kubernetes_is_refused(command: tuple[str, ...], flag: str, run: Run) -> None:
    """The option would have no effect, so the error names the missing --kubernetes."""
    done = run(*command, flag, "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        f"{flag} requires --kubernetes: add --kubernetes to read a cluster, or remove {flag}" in done.stderr
    )


def test_cluster_variables_are_ignored_without_kubernetes(run: Run, tmp_path: Path) -> None:
    """A directory is checked without a cluster, because the variables may be meant for other commands."""
    (tmp_path / "list.yaml").write_text("{apiVersion: v1, kind: List, items: []}")
    done = run("lint", ".", MESHWRIGHT_KUBECONFIG="/etc/kubeconfig", MESHWRIGHT_NAMESPACES="shop")
    assert (done.returncode, done.stdout) == (0, "no problems found\n"), done.stderr
