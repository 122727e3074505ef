"""What a server is told of its cluster: whoever starts it learns at once what is wrong with that."""

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
    """Have a kubeconfig be the only one, with a cluster where nobody listens."""
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
async def test_what_is_wrong_is_said_before_anything_is_asked(
    reached: ClusterAccess, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one sentence, with which a start ends."""
    _only(monkeypatch, tmp_path)
    with pytest.raises(StartupError) as caught:
        cluster(reached, lambda: NOW, StateFile(tmp_path, ANSWER))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_where_nothing_is_known_there_is_nothing_to_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The start ends, with whom it asked; what was kept of another cluster says nothing of this one."""
    _only(monkeypatch, tmp_path)
    answers = StateFile(tmp_path, ANSWER)
    answers.keep(SavedState(Identity("another"), ()))
    for seconds in (0.5, 4, 32):  # a busy machine may need more than the first to be refused by the server
        made = cluster(ClusterAccess(), lambda: NOW, answers, patience=timedelta(seconds=seconds))
        async with made.api:
            with pytest.raises(StartupError) as caught, explained():
                await made.source.first()
        if "127.0.0.1:1" in str(caught.value):
            break
    assert str(caught.value).startswith("cannot read the cluster a: ")
    assert "127.0.0.1:1" in str(caught.value)


def test_who_asks_for_a_server_elsewhere_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whose namespace a MeshConfig counts; else what holds for a server here."""
    _only(monkeypatch, tmp_path)
    monkeypatch.setenv("POD_NAMESPACE", "here")
    made = [cluster(each, lambda: NOW) for each in (ClusterAccess(), ClusterAccess(home="there"))]
    assert [(each.home, each.scope.home) for each in made] == [("here", "here"), ("there", "there")]


def test_home_is_the_namespace_of_the_pod() -> None:
    """Else the usual one."""
    assert (home({}), home({"POD_NAMESPACE": ""}), home({"POD_NAMESPACE": "mesh"})) == (HOME, HOME, "mesh")
