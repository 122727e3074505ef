"""Options that several commands have."""

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
def test_what_is_of_a_cluster_says_so_where_none_is_asked(
    command: tuple[str, ...], flag: str, run: Run
) -> None:
    """Who types it has forgotten a flag, and would be told of a directory alone."""
    done = run(*command, flag, "a")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        f"{flag} has no effect without --kubernetes: add --kubernetes to read a cluster, or remove {flag}"
        in done.stderr
    )


def test_what_stands_in_the_environment_is_for_others(run: Run, tmp_path: Path) -> None:
    """A directory is looked at without a cluster all the same."""
    (tmp_path / "list.yaml").write_text("{apiVersion: v1, kind: List, items: []}")
    done = run("lint", ".", MESHWRIGHT_KUBECONFIG="/etc/kubeconfig", MESHWRIGHT_NAMESPACES="shop")
    assert (done.returncode, done.stdout) == (0, "no problems found\n"), done.stderr
