"""An XMesh object as a value, and the status that the object should have."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Self

from meshwright.kubernetes.status.conditions.conditions import FALSE, TRUE, Condition
from meshwright.kubernetes.status.parents.entries import MESH_CONTROLLER
from meshwright.kubernetes.status.statements import bounded
from meshwright.mesh.gateway.features import CLAIMED

_ACCEPTED: Final = "Accepted"
_INVALID_PARAMETERS: Final = "InvalidParameters"


@dataclass(frozen=True, slots=True)
class MeshObject:
    """The parts of an XMesh that decide about its status, and the present status.

    `parameters` names the object of `parametersRef`; empty without one.
    """

    name: str
    controller: str
    generation: int = 0
    parameters: str = ""
    accepted: Condition | None = None
    features: tuple[str, ...] = ()

    @classmethod
    def parse(cls, raw: Mapping[str, Any]) -> Self:
        """Read an object of the API server. Raises an error for a malformed object, which is then ignored."""
        spec, status = raw["spec"], raw.get("status") or {}
        conditions = [Condition.parse(item) for item in status.get("conditions") or ()]
        reference = spec.get("parametersRef")
        return cls(
            raw["metadata"]["name"],
            spec["controllerName"],
            raw["metadata"].get("generation") or 0,
            "" if reference is None else f"{reference.get('kind')} {reference.get('name')}",
            next((item for item in conditions if item is not None and item.type == _ACCEPTED), None),
            tuple(item["name"] for item in status.get("supportedFeatures") or ()),
        )

    @property
    def is_own(self) -> bool:
        """True if the object names Meshwright as its controller."""
        return self.controller == MESH_CONTROLLER

    @property
    def wanted(self) -> Condition:
        """The condition `Accepted` that the object should have, without the time of its transition."""
        if self.parameters:
            text = bounded(f"Meshwright has no parameters, so remove spec.parametersRef ({self.parameters})")
            return Condition(_ACCEPTED, FALSE, _INVALID_PARAMETERS, text, self.generation)
        text = f"{MESH_CONTROLLER} serves this mesh"
        return Condition(_ACCEPTED, TRUE, _ACCEPTED, text, self.generation)

    @property
    def wanted_features(self) -> tuple[str, ...]:
        """The features that the status should have; a refused object has none."""
        return () if self.parameters else CLAIMED

    @property
    def is_current(self) -> bool:
        """True if the status need not be written; the time of a transition does not count."""
        present = None if self.accepted is None else replace(self.accepted, since=None)
        return (present, self.features) == (self.wanted, self.wanted_features)

    def status(self, now: datetime) -> dict[str, object]:
        """Return the fields of the status to apply."""
        condition = self.wanted.in_transition(self.accepted, now)
        return {
            "conditions": [condition.written()],
            "supportedFeatures": [{"name": name} for name in self.wanted_features],
        }
