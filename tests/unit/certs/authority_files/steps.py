"""Steps of a root rotation in a state directory, taken without a server, and crashes in the middle."""

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from certs.authority_files.store import AuthorityFiles
from certs.issuers.ca_folder import fingerprint_in
from certs.issuers.root import new_root
from certs.issuers.stored_ca import StoredCa
from certs.roots.authority_store import changed
from certs.roots.rotation import Fingerprint, Rotation, begun
from meshwright.mesh.names import TrustDomain


def begin(state: Path, domain: TrustDomain, now: datetime) -> Rotation:
    """Begin a rotation to a new root."""
    other = new_root(domain, now)
    signer = Fingerprint(fingerprint_in(state / "ca"))
    rotation = begun(signer, Fingerprint(other.fingerprint), now)
    store, stored = AuthorityFiles(state), StoredCa.of(other)
    changed(store, lambda authority: replace(authority, other=stored, rotation=rotation))
    return rotation


def step(state: Path, rotation: Rotation | None) -> None:
    """Take a step of the rotation; None ends the rotation."""
    changed(AuthorityFiles(state), lambda authority: authority.stepped(rotation))


def recovered(state: Path) -> Rotation | None:
    """Recover from a crash, as a start of the server does; return the rotation under way."""
    rotation = AuthorityFiles(state).recover().state.rotation
    assert rotation is None or isinstance(rotation, Rotation)
    return rotation


class Died(Exception):
    """Signal that the simulated process has died."""


def dies_at(number: int, patch: pytest.MonkeyPatch) -> None:
    """Let the process die after `number` calls that change the file system."""
    left = number

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            nonlocal left
            if left == 0:
                raise Died
            left -= 1
            return real(*args, **more)

        return call

    for owner, name in ((Path, "rename"), (Path, "replace"), (Path, "unlink"), (os, "rename"), (os, "fsync")):
        patch.setattr(owner, name, dying(getattr(owner, name)))
    patch.setattr(shutil, "rmtree", dying(shutil.rmtree))
