"""Tests of the issuer's settings: the chosen issuer, and refused combinations."""

import asyncio
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from certs.custody import Custody, opened
from certs.issuer_selection import CertManagerSettings, Told, VaultSettings
from certs.issuers.file_authority import WatchedFiles
from certs.issuers.reference import IssuerReference
from certs.issuers.vault.login import ByAppRole, ByKubernetes, ByToken
from meshwright.controller.errors import SettingsError
from meshwright.controller.issuing.issuing import custody, issuer_settings, issuing
from meshwright.controller.settings.settings import load
from meshwright.mesh.names import TrustDomain

VAULT = {"issuer": "vault", "vault_address": "https://v:8200/", "vault_role": "mesh"}


def _load(**given: object) -> Told:
    return issuer_settings(load({"state": "/s", "mesh": "/m", **given}))


def test_each_vault_login_is_read_from_the_settings() -> None:
    """A token, an AppRole and a Kubernetes role are read, with the mount of the login method."""
    result = _load(**VAULT, vault_token_file="/t")
    assert isinstance(result, VaultSettings)
    assert result.login == ByToken(Path("/t"))
    assert result.name == "vault:https://v:8200::pki"
    result = _load(**VAULT, vault_approle_file="/a", vault_auth_mount="other")
    assert isinstance(result, VaultSettings)
    assert result.login == ByAppRole(Path("/a"), "other")
    result = _load(**VAULT, vault_kubernetes_role="r")
    assert isinstance(result, VaultSettings)
    assert result.login == ByKubernetes("r")
    assert _load() is None


def test_ca_in_files_is_read_from_the_settings() -> None:
    """The files are given by name, or as a directory in the form of a mounted Secret."""
    result = _load(issuer="files", ca_certificate="/c", ca_key="/k", ca_roots="/r")
    assert result == WatchedFiles(Path("/c"), Path("/k"), Path("/r"))
    assert _load(issuer="files", ca_directory="/d") == WatchedFiles.within(Path("/d"))


CERT_MANAGER = {"issuer": "cert-manager", "cert_manager_issuer": "ClusterIssuer/mesh"}


def test_cert_manager_issuer_is_read_from_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The namespace is the control plane's unless it is given.

    The cluster can be another one than the mesh's.
    """
    mesh = IssuerReference("ClusterIssuer", "mesh")
    assert _load(**CERT_MANAGER) == CertManagerSettings(mesh, "meshwright-system", 60.0)
    monkeypatch.setenv("POD_NAMESPACE", "here")
    assert _load(**CERT_MANAGER) == CertManagerSettings(mesh, "here", 60.0)
    more = {"cert_manager_namespace": "there", "cert_manager_roots": "/r", "cert_manager_seconds": 5}
    result = _load(**CERT_MANAGER, **more, kubeconfig="/k", kube_context="c")
    assert result == CertManagerSettings(mesh, "there", 5.0, Path("/r"), Path("/k"), "c")
    assert isinstance(result, CertManagerSettings)
    assert result.name == "cert-manager:ClusterIssuer/mesh"
    others = _load(issuer="cert-manager", cert_manager_issuer="StepIssuer.certmanager.step.sm/a.b")
    assert isinstance(others, CertManagerSettings)
    assert others.issuer == IssuerReference("StepIssuer", "a.b", "certmanager.step.sm")
    assert others.name == "cert-manager:StepIssuer.certmanager.step.sm/a.b:here"


def test_key_custody_is_read_from_the_settings() -> None:
    """The CA is in the state directory by default.

    An external CA is given by file names or as a directory.
    """

    def found(**given: object) -> Custody:
        return custody(load({"state": "/s", "mesh": "/m", **given}))

    assert found() == Custody()
    assert found(key_passphrase_file="/p") == Custody(Path("/p"))
    by_name = WatchedFiles(Path("/c"), Path("/k"), Path("/r"), roots_setting="authority_roots")
    fields = {"authority_certificate": "/c", "authority_key": "/k", "authority_roots": "/r"}
    assert found(**fields) == Custody(authority=by_name)
    within = WatchedFiles.within(Path("/d"), "authority_roots")
    assert found(authority_directory="/d") == Custody(authority=within)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"vault_role": "mesh"},
            "vault_role requires issuer vault: set issuer to vault, or remove vault_role",
        ),
        ({"issuer": "vault"}, "issuer vault needs vault_address"),
        ({**VAULT}, "issuer vault needs exactly one of vault_token_file, vault_approle_file, .*, but has 0"),
        ({**VAULT, "vault_token_file": "/t", "vault_kubernetes_role": "r"}, "but has 2"),
        ({"issuer": "files"}, "issuer files needs either ca_directory, or ca_certificate and ca_key"),
        ({"issuer": "files", "ca_certificate": "/c"}, "issuer files needs"),
        (
            {"issuer": "files", "ca_certificate": "/c", "ca_key": "/k", "ca_directory": "/d"},
            "issuer files needs either",
        ),
        ({"ca_key": "/k"}, "ca_key requires issuer files"),
        (
            {"authority_certificate": "/c"},
            "needs either authority_directory, or authority_certificate and auth",
        ),
        ({"authority_roots": "/c"}, "a mesh CA in files needs either"),
        ({"authority_directory": "/d", "authority_roots": "/r"}, "a mesh CA in files needs either"),
        ({"authority_directory": "/d", "authority_key": "/k"}, "a mesh CA in files needs either"),
        ({**VAULT, "vault_address": "v:8200"}, "--vault-address is 'v:8200': must be a URL"),
        ({**VAULT, "vault_address": "https://u:p@v"}, "must be a URL without user"),
        ({**VAULT, "vault_address": "https://v:99999"}, "must be a URL"),
        ({**VAULT, "vault_namespace": "team\n"}, "--vault-namespace is 'team.n': must be the path"),
        ({"issuer": "cert-manager"}, "issuer cert-manager needs cert_manager_issuer"),
        ({"cert_manager_seconds": 5}, "cert_manager_seconds requires issuer cert-manager"),
        ({**CERT_MANAGER, "vault_role": "mesh"}, "vault_role requires issuer vault"),
        (
            {**CERT_MANAGER, "cert_manager_issuer": "mesh"},
            "--cert-manager-issuer is 'mesh': must be Issuer/NAME",
        ),
        ({**CERT_MANAGER, "cert_manager_issuer": "issuer/mesh"}, "must be Issuer/NAME"),
        ({**CERT_MANAGER, "cert_manager_issuer": "Certificate/mesh"}, "must be Issuer/NAME"),
        ({**CERT_MANAGER, "cert_manager_issuer": "Step./mesh"}, "must be Issuer/NAME"),
        ({**CERT_MANAGER, "cert_manager_issuer": "Issuer/a/b"}, "must be Issuer/NAME"),
        ({**CERT_MANAGER, "cert_manager_namespace": "A_b"}, "must be the name of a namespace"),
        ({**CERT_MANAGER, "cert_manager_seconds": 0}, "--cert-manager-seconds is '?0"),
        ({**CERT_MANAGER, "namespaces": "a"}, "--namespaces requires --kubernetes"),
        ({"kubeconfig": "/k"}, "--kubeconfig requires --kubernetes"),
        ({"issuer": "valt"}, "--issuer is 'valt'"),
    ],
)
def test_contradictory_issuer_settings_are_refused(given: dict[str, object], sentence: str) -> None:
    """The error names the setting, and is raised when the settings are loaded."""
    with pytest.raises(SettingsError, match=sentence):
        _load(**given)


async def test_slow_issuer_at_startup_is_logged_and_a_stop_ends_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiting start is logged, because no port is open meanwhile; a stop ends the wait."""
    monkeypatch.setattr("meshwright.controller.issuing.issuing.SILENT_SECONDS", 0.01)
    state, now, stop = tmp_path / "state", datetime(2031, 1, 1, tzinfo=UTC), asyncio.Event()
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        opened(state, TrustDomain("mesh.example"), now) as authority,
        capture_logs() as logs,
    ):
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        fields = {**VAULT, "vault_address": address, "vault_token_file": "/t"}
        waiting = asyncio.create_task(
            issuing(load({"state": str(state), "mesh": "/m", **fields}), authority, now, stop)
        )
        async with asyncio.timeout(60):
            while not logs:
                await asyncio.sleep(0.01)
            stop.set()
            assert await waiting is None
    event = "issuer has not answered yet; the server serves proxies after the first answer"
    assert logs == [{"event": event, "issuer": "vault", "log_level": "warning"}]
