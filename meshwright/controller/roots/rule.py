"""Rule that decides about root rotations: commands, or objects that declare CAs."""

from typing import Protocol

from certs.roots.rotation import Rotation


class Rule(Protocol):
    """Decision over the mesh's CAs during root rotations: made by MeshRootCertificates, or by commands."""

    def refusal(self) -> str:
        """Return the reason why commands must not start or change a root rotation; empty if they may."""

    def hold_reason(self, rotation: Rotation) -> str:
        """Return the reason why the root rotation must not take the next stage yet; empty if it may."""


class ManualApproval:
    """Rule under which only commands start and change root rotations."""

    def refusal(self) -> str:
        """Return an empty text: commands may change the CA."""
        return ""

    def hold_reason(self, rotation: Rotation) -> str:
        """Return an empty text: the next stage is never delayed by this rule."""
        del rotation
        return ""
