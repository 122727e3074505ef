"""What an installation needs of a cluster is looked for before it is installed."""

import pytest

from meshwright.cli.checking.judgements import storage
from meshwright.cli.checking.judgements.check import Status
from meshwright.cli.checking.judgements.storage import StorageClass

FAST, SLOW = StorageClass("fast"), StorageClass("slow", default=True)


@pytest.mark.parametrize(
    ("wanted", "found", "status", "said"),
    [
        ("", [FAST, SLOW], Status.OK, "StorageClass slow is the cluster's default"),
        (
            "",
            [FAST],
            Status.FAILED,
            "the cluster has no default StorageClass, so the Pod would stay Pending",
        ),
        ("", [], Status.FAILED, "the cluster has: none"),
        ("fast", [FAST], Status.OK, "StorageClass fast exists"),
        ("other", [FAST], Status.FAILED, "StorageClass other does not exist; the cluster has: fast"),
        (None, [], Status.OK, "persistence.enabled is false"),
    ],
)
def test_a_volume_can_be_made_or_it_is_said(
    wanted: str | None, found: list[StorageClass], status: Status, said: str
) -> None:
    """Without a StorageClass the control plane's Pod is Pending after an installation that succeeded."""
    check = storage.volume(wanted, found)
    assert (check.status, said in check.said) == (status, True), check
    assert status is Status.OK or "persistence." in check.do


def test_definitions_of_others_keep_helm_from_installing() -> None:
    """As those of Open Service Mesh: Helm takes over nothing that it has not made."""
    foreign = ["trafficsplits.split.smi-spec.io"]
    assert storage.definitions([], installed=True).status is Status.OK
    assert storage.definitions(foreign, installed=False).status is Status.OK
    found = storage.definitions(foreign, installed=True)
    assert found.status is Status.WARNING
    assert "crds.install=false" in found.do
