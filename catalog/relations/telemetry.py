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


def precedence(found: Telemetry) -> tuple[bool, bool, str, PolicyKey]:
    """Return the sort key of a Telemetry among those of one namespace for a workload."""
    return (not found.selector, not found.created, found.created, found.key)


@derived
def of_namespace(view: View, namespace: Namespace) -> tuple[Telemetry, ...]:
    """Return the objects that may apply to workloads of a namespace, in order of precedence."""
    found = sorted(telemetries_in(view).found(namespace), key=precedence)
    home = config_in_force(view)
    if home is not None and home.namespace != namespace:
        everywhere = (each for each in telemetries_in(view).found(home.namespace) if not each.selector)
        found += sorted(everywhere, key=precedence)
    return tuple(found)


def telling(view: View, workload: Workload) -> tuple[PolicyKey, ...]:
    """Return the objects in force for a workload's proxy; each sets something that no earlier one sets."""
    return tuple(each.key for each in _counting(view, workload))


def _counting(view: View, workload: Workload) -> Iterator[Telemetry]:
    logs = sampling = False
    for each in of_namespace(view, workload.key.namespace):
        if not selects(each, workload):
            continue
        more = (each.access_log is not None and not logs) or (each.sampling is not None and not sampling)
        logs, sampling = logs or each.access_log is not None, sampling or each.sampling is not None
        if more:
            yield each


def selects(found: Telemetry, workload: Workload) -> bool:
    """Return whether a workload has all labels of a Telemetry's selector."""
    return not found.selector or set(found.selector) <= set(workload.labels)


def told(view: View, keys: tuple[PolicyKey, ...]) -> tuple[Telemetry, ...]:
    """Return the Telemetry objects of these keys, without missing ones."""
    return tuple(each for key in keys if (each := telemetries(view).get(key)) is not None)
