"""Tests of the settings for etcd: what belongs together, and what is never shown."""

import pytest

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.settings import load

ENDPOINTS = "https://10.0.0.1:2379, https://10.0.0.2"
STORE = {"mesh": "m", "state": "s", "store": "etcd", "key_passphrase_file": "p"}
ACCESS = {"etcd_endpoints": ENDPOINTS, "etcd_certificate": "c", "etcd_key": "k"}


def test_store_in_etcd_needs_no_cluster() -> None:
    """A directory of manifests is enough as the source, and endpoints have their port."""
    settings = load(STORE | ACCESS)
    assert settings.etcd_endpoints == ("https://10.0.0.1:2379", "https://10.0.0.2:2379")
    assert (settings.kubernetes, settings.sources) == (False, ("the mesh directory m",))


def test_objects_in_etcd_are_a_source() -> None:
    """One server with its own directory reads the mesh from etcd, without another source."""
    settings = load({"state": "s", "etcd_objects": "yes"} | ACCESS)
    assert settings.sources == ("objects in etcd",)
    assert load(STORE | ACCESS | {"etcd_objects": "yes"}).sources == (
        "the mesh directory m",
        "objects in etcd",
    )


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            {},
            (
                "store etcd needs etcd_endpoints, the client URLs of etcd's members, for example "
                "https://10.0.0.1:2379"
            ),
        ),
        (
            {"store": "directory", "etcd_objects": "yes"},
            (
                "etcd_objects needs etcd_endpoints, the client URLs of etcd's members, for example "
                "https://10.0.0.1:2379"
            ),
        ),
        (
            {"etcd_endpoints": ENDPOINTS},
            (
                "store etcd needs a client certificate (etcd_certificate and etcd_key), or etcd_user_file, "
                "because otherwise everybody who reaches etcd could write the mesh"
            ),
        ),
        (
            {"etcd_endpoints": ENDPOINTS, "etcd_certificate": "c"},
            "etcd_certificate requires etcd_key: set etcd_key too, or remove etcd_certificate",
        ),
        (
            {"etcd_endpoints": ENDPOINTS, "etcd_key": "k"},
            "etcd_key requires etcd_certificate: set etcd_certificate too, or remove etcd_key",
        ),
        (
            {"store": "directory", **ACCESS},
            (
                "--etcd-endpoints requires store etcd or etcd_objects: set one of them, or remove "
                "--etcd-endpoints"
            ),
        ),
        (
            {"store": "directory", "etcd_user_file": "u"},
            (
                "--etcd-user-file requires store etcd or etcd_objects: set one of them, or remove "
                "--etcd-user-file"
            ),
        ),
        (
            ACCESS | {"key_passphrase_file": None},
            (
                "store etcd requires key_passphrase_file, the same passphrase on all servers: without it, "
                "whoever may read the records could read the private keys of the mesh"
            ),
        ),
        (
            ACCESS | {"rebuild_ledger": "3f9a02"},
            (
                "store etcd does not work with rebuild_ledger: all servers use the CA and the ledger in the "
                "store; remove rebuild_ledger, or remove store"
            ),
        ),
        (
            {"etcd_endpoints": "http://10.0.0.1:2379"},
            (
                "--etcd-endpoints: endpoint 'http://10.0.0.1:2379' of etcd is plain text, which is permitted "
                "on loopback only: use https"
            ),
        ),
        (
            {"etcd_endpoints": "10.0.0.1:2379"},
            "--etcd-endpoints: endpoint '10.0.0.1:2379' of etcd: use for example https://10.0.0.1:2379",
        ),
        (
            {"etcd_endpoints": "https://mesh:secret@10.0.0.1:x"},
            (
                "--etcd-endpoints: an endpoint of etcd has a user: put user and password into a file, and "
                "use for example https://10.0.0.1:2379"
            ),
        ),
    ],
)
def test_wrong_combination_is_one_sentence(flags: dict[str, object], sentence: str) -> None:
    """The sentence names the settings and what to do, and never shows a password."""
    with pytest.raises(SettingsError) as caught:
        load(STORE | flags)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    "access",
    [
        {"etcd_endpoints": "http://127.0.0.1:2379"},
        {"etcd_endpoints": "http://[::1]:2379,http://localhost:2380"},
        {"etcd_endpoints": ENDPOINTS, "etcd_user_file": "u"},
        ACCESS | {"etcd_ca": "ca"},
    ],
)
def test_each_secured_access_is_sufficient(access: dict[str, object]) -> None:
    """On loopback plain text is permitted; elsewhere a client certificate or a user."""
    assert load(STORE | access).etcd_given[0] == "etcd_endpoints"


def test_a_command_that_reads_no_mesh_ignores_the_access(monkeypatch: pytest.MonkeyPatch) -> None:
    """`meshwright check` works in a shell with the variables for `meshwright apply`."""
    monkeypatch.setenv("MESHWRIGHT_ETCD_ENDPOINTS", ENDPOINTS)
    assert load({"state": "s"}, nothing_to_read=True).etcd_used_by == ""
