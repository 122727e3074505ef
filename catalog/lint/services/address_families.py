"""Problems of IPv6 addresses of workloads whose sidecars accept only IPv4 connections."""

from collections.abc import Iterator
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.wording import Place
from catalog.store.objects import workload_object
from catalog.store.view import View
from meshwright.mesh.kinds import POD
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.workload import Transparent, Workload

_OF_WORKLOAD: Final = "spec.interception.ipv6"
_OF_POD: Final = "metadata.annotations.meshwright.dev/interception-ipv6"


def of_workload(view: View, workload: Workload) -> Iterator[Problem]:
    """Yield the problems of the addresses of a workload."""
    match workload.interception:
        case Transparent(ipv6=False) if workload.uuid is not None:
            past = [address for address in workload.addresses if ":" in address]
        case _:
            return
    if not past:
        return
    key = workload_object(view, workload.key)
    place, field = Place(view, key), _OF_POD if key.kind == POD else _OF_WORKLOAD
    if len(past) == len(workload.addresses):
        words = (
            "The workload has only IPv6 addresses, but the sidecar accepts only IPv4 connections, so calls "
            "do not reach the sidecar. Set the value to true."
        )
        yield place.error(Code.NO_WAY_TO_SIDECAR, field, "false", words)
    else:
        words = (
            f"Connections to {past[0]} bypass the sidecar and all policies, because the sidecar accepts "
            "only IPv4 connections. Set the value to true to send "
            "them through the sidecar."
        )
        yield place.warning(Code.PAST_SIDECAR, field, "false", words)
