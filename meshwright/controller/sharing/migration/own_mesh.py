"""The mesh of a server's own state directory, as one value. The caller holds the lock of the directory."""

from collections.abc import Callable
from datetime import datetime
from importlib.metadata import version

from certs.custody import AuthorityWithLedger, opened
from certs.errors import StateError
from meshwright.controller.gateway.certificate import GATEWAY_SECRETS
from meshwright.controller.issuing.issuing import custody
from meshwright.controller.settings.settings import Settings
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.controller.state_files import VERDICTS, StateFile
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.mesh.names import SecretName, TrustDomain
from meshwright.transfer.directory_state import read_directory, write_directory
from meshwright.transfer.mesh_state import MeshState
from meshwright.transfer.state_file import Header, sealed
from meshwright.transfer.store_state import ATTEMPTS


def read_own_mesh(settings: Settings, clock: Callable[[], datetime]) -> MeshState:
    """Return the mesh of the state directory, after all checks of a start. Raises StateError.

    As a start does, this encrypts the private keys in the directory if a passphrase is set.
    """
    state, domain = settings.state, TrustDomain(settings.trust_domain)
    with opened(state, domain, clock(), custody=custody(settings)) as authority:
        return read_directory(state, authority, _secrets(settings), _rejections(settings))


def export_open(settings: Settings, authority: AuthorityWithLedger, passphrase: bytes, now: datetime) -> str:
    """Return the mesh of a running server as the text of a sealed file. Raises StateError.

    `authority` is the opened CA of the server, so that the export has all events, written or not.
    """
    if settings.store is not StoreKind.DIRECTORY:
        raise StateError(
            f"the mesh is in the store {settings.store}: add --set store={settings.store} to the command"
        )
    if authority.rebuilding is not None:
        raise StateError(
            "the ledger is being rebuilt: finish this first, or the export would lack revocations"
        )
    kept = (_secrets(settings), _rejections(settings))
    mesh = _steady(lambda: read_directory(settings.state, authority, *kept), authority)
    header = Header.of(mesh, version("meshwright"), TrustDomain(settings.trust_domain), now)
    return sealed(mesh, header, passphrase)


def _steady(read: Callable[[], MeshState], authority: AuthorityWithLedger) -> MeshState:
    """Return what `read` returns while the CA stays the same: a step of a root rotation may come between."""
    before = authority.store.read().revision
    for _ in range(ATTEMPTS):
        mesh = read()
        if (after := authority.store.read().revision) == before:
            return mesh
        before = after
    raise StateError("the CA changed during each attempt: run the command again later")


def _secrets(settings: Settings) -> StateFile[frozenset[SecretName]]:
    return StateFile(settings.state, GATEWAY_SECRETS)


def _rejections(settings: Settings) -> StateFile[tuple[Verdict, ...]]:
    return StateFile(settings.state, VERDICTS)


def write_own_mesh(settings: Settings, mesh: MeshState) -> None:
    """Write a mesh into the state directory, which must be empty. Raises StateError."""
    kept = (_secrets(settings), _rejections(settings))
    write_directory(settings.state, mesh, settings.key_passphrase_file, *kept)
