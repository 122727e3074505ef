"""What is wrong with a workload's addresses: calls by IPv6 pass a sidecar that takes those by IPv4 alone."""

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
    """Yield what is wrong with where a workload is called."""
    match workload.interception:
        case Transparent(ipv6=False) if workload.uuid is not None:
            past = [each for each in workload.addresses if ":" in each]
        case _:
            return
    if not past:
        return
    key = workload_object(view, workload.key)
    place, field = Place(view, key), _OF_POD if key.kind == POD else _OF_WORKLOAD
    if len(past) == len(workload.addresses):
        words = "it has addresses of IPv6 alone, so that no call comes to its sidecar: must be true"
        yield place.error(Code.NO_WAY_TO_SIDECAR, field, "false", words)
    else:
        words = f"who calls {past[0]} comes past its sidecar, and nobody judges it: true leads it there"
        yield place.warning(Code.PAST_SIDECAR, field, "false", words)
