"""Problems of several servers as one list, in which each rejection counts once. A pure module."""

from collections.abc import Iterable

from meshwright.delivery.quarantine.problems import REJECTED
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Problem, Problems, ordered

_Place = tuple[Origin, ObjectKey, str, str]


def of_others(own: Iterable[Problem], others: Iterable[Problem]) -> Problems:
    """Return the problems that only other servers know, without rejections that repeat one in `own`.

    A problem names one of the proxies that reject a resource with the same message. Each server names a proxy
    of its own, and one that a proxy has just left still names it. For example, 300 proxies of three servers
    reject a match of an HTTPRouteGroup: the group has one problem.
    """
    known = {place for problem in own if (place := _place(problem)) is not None}
    result = []
    for problem in ordered(others):
        place = _place(problem)
        if place is None or place not in known:
            result.append(problem)
        if place is not None:
            known.add(place)
    return tuple(result)


def _place(problem: Problem) -> _Place | None:
    """Return what rejections of one resource because of one object have in common; None without rejection."""
    if problem.code != REJECTED or problem.key is None:
        return None
    return problem.origin, problem.key, problem.field, problem.value
