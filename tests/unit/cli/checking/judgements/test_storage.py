"""Tests of the checks of a cluster's storage and definitions before an installation."""

import pytest

from meshwright.cli.checking.judgements.check import Status
from meshwright.cli.checking.judgements.environment import storage
from meshwright.cli.checking.judgements.environment.storage import StorageClass

FAST, SLOW = StorageClass("fast"), StorageClass("slow", default=True)


@pytest.mark.parametrize(
    ("wanted", "found", "status", "said"),
    [
        ("", [FAST, SLOW], Status.OK, "StorageClass slow is the cluster's default"),
        (
            "",
            [FAST],
            Status.FAILED,
            "the cluster lacks a default StorageClass, so the Pod would stay Pending",
        ),
        ("", [], Status.FAILED, "the cluster has: none"),
        ("fast", [FAST], Status.OK, "StorageClass fast exists"),
        ("other", [FAST], Status.FAILED, "StorageClass other does not exist; the cluster has: fast"),
        (None, [], Status.OK, "no volume claim"),
    ],
)
def test_storage_class_must_exist_or_the_check_fails(
    wanted: str | None, found: list[StorageClass], status: Status, said: str
) -> None:
    """Without a StorageClass the control plane's Pod stays Pending after a successful installation."""
    check = storage.volume(wanted, found)
    assert (check.status, said in check.finding) == (status, True), check
    assert status is Status.OK or "persistence." in check.do


def test_foreign_definitions_are_a_warning_before_an_installation() -> None:
    """Helm does not take over definitions that it has not created, for example those of Open Service Mesh."""
    foreign = ["trafficsplits.split.smi-spec.io"]
    assert storage.definitions([], installed=True).status is Status.OK
    assert storage.definitions(foreign, installed=False).status is Status.OK
    check = storage.definitions(foreign, installed=True)
    assert check.status is Status.WARNING
    assert "crds.install=false" in check.do
