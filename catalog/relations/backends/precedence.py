"""Precedence between workloads with one address.

The rule of `catalog.store.precedence` with one exception: of two equally healthy workloads the younger wins,
because a network reuses an address only after its former holder has ended.
"""

from catalog.store.inventory import by_address
from catalog.store.precedence import age, health_rank
from catalog.store.view import View
from meshwright.mesh.workload import Transparent, Workload


def is_superseded(view: View, workload: Workload) -> bool:
    """Return whether another workload of the namespace now has a workload's address.

    Kubernetes keeps the object of a Pod on a lost node, or with a finalizer, while the network may give its
    address to another Pod. Only a workload in transparent interception has an address of its own.
    """
    if not _is_alone(workload):
        return False
    rivals = {
        item.key: item
        for address in workload.addresses
        for item in by_address(view).lookup(address)
        if item.key.namespace == workload.key.namespace and _is_alone(item)
    }
    if len(rivals) < 2:
        return False
    return _holder(list(rivals.values())).key != workload.key


def _holder(rivals: list[Workload]) -> Workload:
    """Return the workload with precedence among rivals: the healthiest, then the youngest, then by name."""
    by_name = sorted(rivals, key=lambda workload: workload.key)
    # `sorted` and `min` are stable, so among workloads of equal age and health the first by name wins.
    youngest_first = sorted(by_name, key=lambda workload: age(workload.created), reverse=True)
    return min(youngest_first, key=lambda workload: health_rank(workload.health))


def _is_alone(workload: Workload) -> bool:
    return isinstance(workload.interception, Transparent) and not workload.shares_address
