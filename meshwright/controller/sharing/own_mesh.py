"""The mesh of a server's own state directory, as one value. The caller holds the lock of the directory."""

from collections.abc import Callable
from datetime import datetime

from certs.custody import opened
from meshwright.controller.gateway.certificate import GATEWAY_SECRETS
from meshwright.controller.issuing.issuing import custody
from meshwright.controller.settings.settings import Settings
from meshwright.controller.state_files import StateFile
from meshwright.mesh.names import TrustDomain
from meshwright.transfer.directory_state import read_directory, write_directory
from meshwright.transfer.mesh_state import MeshState


def read_own_mesh(settings: Settings, clock: Callable[[], datetime]) -> MeshState:
    """Return the mesh of the state directory, after all checks of a start. Raises StateError.

    As a start does, this encrypts the private keys in the directory if a passphrase is set.
    """
    state, domain = settings.state, TrustDomain(settings.trust_domain)
    with opened(state, domain, clock(), custody=custody(settings)) as authority:
        return read_directory(state, authority, StateFile(state, GATEWAY_SECRETS))


def write_own_mesh(settings: Settings, mesh: MeshState) -> None:
    """Write a mesh into the state directory, which must be empty. Raises StateError."""
    state = settings.state
    write_directory(state, mesh, settings.key_passphrase_file, StateFile(state, GATEWAY_SECRETS))
