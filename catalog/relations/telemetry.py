"""Telemetry objects in force for a workload's proxy.

An object that selects the workload by labels wins over one for its whole namespace, and this over one for the
mesh (without a selector, in the namespace of the MeshConfig in force). Of equals the oldest wins
(`metadata.creationTimestamp`; those without one last), then the first by name. Access logs and sampling are
decided separately.
"""

from collections.abc import Iterator

from catalog.store.osm import telemetries, telemetries_in
from catalog.store.view import View, config_in_force
from meshwright.engine.derived import derived
from meshwright.mesh.names import Namespace
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.policies.telemetry import Telemetry
from meshwright.mesh.workload import Workload


def precedence(telemetry: Telemetry) -> tuple[bool, bool, str, PolicyKey]:
    """Return the sort key of a Telemetry among those of one namespace for a workload."""
    return (not telemetry.selector, not telemetry.created, telemetry.created, telemetry.key)


@derived
def of_namespace(view: View, namespace: Namespace) -> tuple[Telemetry, ...]:
    """Return the Telemetry objects that may apply to workloads of a namespace, in order of precedence."""
    result = sorted(telemetries_in(view).lookup(namespace), key=precedence)
    home = config_in_force(view)
    if home is not None and home.namespace != namespace:
        everywhere = (
            telemetry for telemetry in telemetries_in(view).lookup(home.namespace) if not telemetry.selector
        )
        result += sorted(everywhere, key=precedence)
    return tuple(result)


def telling(view: View, workload: Workload) -> tuple[PolicyKey, ...]:
    """Return the objects in force for a workload's proxy; each sets something that no earlier one sets."""
    return tuple(telemetry.key for telemetry in _counting(view, workload))


def _counting(view: View, workload: Workload) -> Iterator[Telemetry]:
    logs = sampling = False
    for telemetry in of_namespace(view, workload.key.namespace):
        if not selects(telemetry, workload):
            continue
        more = (telemetry.access_log is not None and not logs) or (
            telemetry.sampling is not None and not sampling
        )
        logs, sampling = logs or telemetry.access_log is not None, sampling or telemetry.sampling is not None
        if more:
            yield telemetry


def selects(telemetry: Telemetry, workload: Workload) -> bool:
    """Return whether a workload has all labels of a Telemetry's selector."""
    return not telemetry.selector or set(telemetry.selector) <= set(workload.labels)


def telemetry_objects(view: View, keys: tuple[PolicyKey, ...]) -> tuple[Telemetry, ...]:
    """Return the Telemetry objects with these keys, without missing ones."""
    return tuple(telemetry for key in keys if (telemetry := telemetries(view).get(key)) is not None)
