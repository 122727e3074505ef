"""Tests of the cluster's settings at start: invalid or unreachable clusters end the start."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from meshwright.controller.errors import StartupError
from meshwright.controller.kubernetes.cluster import ANSWER, ClusterAccess, cluster
from meshwright.controller.kubernetes.home import HOME, home
from meshwright.controller.server import explained
from meshwright.controller.state_files import StateFile
from meshwright.providers.kubernetes.identity import Identity
from meshwright.providers.kubernetes.last_state import SavedState

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def _only(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Set KUBECONFIG to a configuration with one cluster, at an address where no server listens."""
    config = folder / "config"
    config.write_text(
        "{current-context: a, clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], "
        "contexts: [{name: a, context: {cluster: a}}]}"
    )
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.mark.parametrize(
    ("reached", "said"),
    [
        (ClusterAccess(Path("none")), "none"),
        (ClusterAccess(selector="a in b"), "must be a label selector"),
        (ClusterAccess(namespaces=("A",)), "'A' is not a namespace: must be 1 to 63 characters"),
        (ClusterAccess(home="A"), "the control plane's namespace is 'A': must be 1 to 63 of a-z"),
    ],
)
async def test_invalid_cluster_settings_end_the_start(
    reached: ClusterAccess, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error is one sentence and is raised before any request."""
    _only(monkeypatch, tmp_path)
    with pytest.raises(StartupError) as caught:
        cluster(reached, lambda: NOW, StateFile(tmp_path, ANSWER))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_unreachable_cluster_without_a_saved_state_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the cluster and its address. The saved state of another cluster is not used."""
    _only(monkeypatch, tmp_path)
    answers = StateFile(tmp_path, ANSWER)
    answers.keep(SavedState(Identity("another"), ()))
    for seconds in (0.5, 4, 32):  # on a busy machine the refusal may take longer
        made = cluster(ClusterAccess(), lambda: NOW, answers, patience=timedelta(seconds=seconds))
        async with made.api:
            with pytest.raises(StartupError) as caught, explained():
                await made.source.first()
        if "127.0.0.1:1" in str(caught.value):
            break
    assert str(caught.value).startswith("cannot read the cluster a: ")
    assert "127.0.0.1:1" in str(caught.value)


def test_namespace_of_the_control_plane_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The given namespace has priority over that of the pod, also for the scope of the MeshConfig."""
    _only(monkeypatch, tmp_path)
    monkeypatch.setenv("POD_NAMESPACE", "here")
    made = [
        cluster(cluster_access, lambda: NOW)
        for cluster_access in (ClusterAccess(), ClusterAccess(home="there"))
    ]
    assert [(item.home, item.scope.home) for item in made] == [("here", "here"), ("there", "there")]


def test_home_is_the_pod_s_namespace_or_the_default() -> None:
    """The namespace is read from POD_NAMESPACE; without it the default is used."""
    assert (home({}), home({"POD_NAMESPACE": ""}), home({"POD_NAMESPACE": "mesh"})) == (HOME, HOME, "mesh")
