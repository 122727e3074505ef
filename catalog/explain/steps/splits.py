"""Steps about TrafficSplits: the deciding one, the others with reasons, and backends without calls."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of
from catalog.oracle import decide as oracle
from catalog.oracle.decide import SplitVerdict
from catalog.oracle.request.request import Request
from catalog.oracle.splits import backend_key
from catalog.store.smi import splits_by_apex
from catalog.store.view import View
from meshwright.mesh.kinds import TRAFFIC_SPLIT
from meshwright.mesh.policies.smi import TrafficSplit
from meshwright.mesh.service import ServicePort


def of_splits(view: View, request: Request, port: ServicePort, split: TrafficSplit | None) -> Iterator[Step]:
    """Yield a step for each TrafficSplit of a Service, and for each backend without a share."""
    if split is not None:
        shares = ", ".join(f"{backend.service} {backend.weight}" for backend in split.backends)
        whose = (
            "because the request fits its matches" if split.matches else "because it applies to all requests"
        )
        text = f"TrafficSplit {split.key} chooses the backend, {whose}: {shares}."
        yield Step(text, origin_of(view, TRAFFIC_SPLIT, split.key))
    for other in splits_by_apex(view).lookup(request.service):
        if split is None or other.key != split.key:
            verdict = oracle.judge_split(view, other, request, port)
            outdone = verdict is SplitVerdict.DECIDES and split is not None
            message = _outdone(split, other) if outdone and split is not None else verdict.value
            yield Step(f"TrafficSplit {other.key} {message}.", origin_of(view, TRAFFIC_SPLIT, other.key))
    if split is not None:
        reached = {key for key, _, _ in oracle.backends(view, request, port, split)}
        for key in dict.fromkeys(backend_key(split, backend) for backend in split.backends):
            if key not in reached:
                lacks = (
                    f"has no port {port.port}{_or_named(port)}" if key in view.services else "does not exist"
                )
                yield Step(f"Service {key} {lacks}, so it gets no share.")


def _outdone(first: TrafficSplit, other: TrafficSplit) -> str:
    """Return the clause with the reason why one TrafficSplit takes precedence over another."""
    if first.matches and not other.matches:
        why = "has matches that the request fits"
    elif first.created and not other.created:
        why = "has a creation time"
    elif first.created != other.created:
        why = "is older"
    else:
        why = "comes first by name"
    return f"does not count, because TrafficSplit {first.key} takes precedence: it {why}"


def _or_named(port: ServicePort) -> str:
    return f" and none named {port.name}" if port.name else ""
