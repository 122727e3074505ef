"""What a wave is computed from: the present answers of all sources, taken at one moment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from catalog.store.view import MeshSettings
from delivery.events import Specification
from mesh.endpoints import Inventory
from mesh.identity import ProxyName
from mesh.objects import ObjectKey, Sourced
from mesh.picture import Picture
from mesh.problems import Problem
from providers.contract import EndpointProvider


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a wave is computed from, taken at one moment."""

    objects: Mapping[ObjectKey, Sourced]
    inventories: tuple[tuple[str, Inventory], ...]
    problems: tuple[Problem, ...]
    settings: MeshSettings
    admitted: Mapping[ProxyName, ProxyName] = field(default_factory=Picture)


def read_inputs(
    specification: Specification,
    providers: Sequence[EndpointProvider],
    settings: MeshSettings,
    admitted: Mapping[ProxyName, ProxyName],
) -> Inputs:
    """Take the sources' present answers, and who is admitted at present."""
    return Inputs(
        specification.objects(),
        tuple((provider.name, provider.inventory()) for provider in providers),
        _problems(specification, providers),
        settings,
        admitted,
    )


def _problems(specification: Specification, providers: Iterable[EndpointProvider]) -> tuple[Problem, ...]:
    """Return what is wrong in all sources, each problem once."""
    others = (problem for provider in providers for problem in provider.problems())
    return tuple(dict.fromkeys((*specification.problems(), *others)))
