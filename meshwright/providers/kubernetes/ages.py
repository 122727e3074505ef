"""Age of a cluster's answer, as a whole and for each kind; called often, and for thousands of watches."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from meshwright.kube.reflector.statistics import Figures
from meshwright.providers.contract import Freshness, Watch
from meshwright.providers.kubernetes.running_watch import Place, RunningWatch, shown
from meshwright.providers.kubernetes.status import without
from meshwright.providers.kubernetes.watches import Watches


class Ages:
    """Ages of the objects of `watches`; only entries of watches with news are computed again."""

    def __init__(self, watches: Watches) -> None:
        self._watches = watches
        self._last_entries: dict[Place, tuple[RunningWatch, Figures, Watch]] = {}
        self._sorted: tuple[Watch, ...] = ()

    def freshness(self, last_event: datetime | None) -> Freshness:
        """Return the age of the cluster's objects, which is the age of the oldest needed watch."""
        ages = self._entries()
        needed = [watch for watch in ages if watch.needed]
        heard = [watch.heard for watch in needed if watch.heard is not None]
        errors, since = _failing(needed)
        watches = self._watches
        if watches.undiscovered and not errors:
            errors, since = [watches.undiscovered], watches.undiscovered_since
        doubted = (
            place
            for place, running_watch in watches.at.items()
            if running_watch.emptied.held_since is not None
        )
        return Freshness(
            last_event=last_event,
            last_full_read=min(heard, default=None) if len(heard) == len(needed) else None,
            error=_counted(errors),
            error_since=since,
            held=(*map(shown, doubted), *sorted(kind.full for kind in watches.plan.missing)),
            watches=ages,
        )

    def _entries(self) -> tuple[Watch, ...]:
        """Return an entry for each watch, sorted by name; the identical tuple without a change."""
        at, texts = self._watches.at, self._last_entries
        other = [
            (place, watching, watching.figures)
            for place, watching in at.items()
            if (known := texts.get(place)) is None
            or known[0] is not watching
            or known[1] is not watching.figures
        ]
        if other or len(texts) != len(at):
            for place, watching, figures in other:
                texts[place] = watching, figures, _watch(self._watches, place, watching)
            for place in [item for item in texts if item not in at]:
                del texts[place]
            self._sorted = tuple(sorted((watch for _, _, watch in texts.values()), key=_by_name))
        return self._sorted


def _failing(watches: Iterable[Watch]) -> tuple[list[str], datetime | None]:
    """Return the errors of failing watches, sorted, and the time of the first error."""
    failing = [watch for watch in watches if watch.error]
    since = (watch.error_since for watch in failing if watch.error_since is not None)
    return sorted({watch.error for watch in failing}), min(since, default=None)


def _by_name(watch: Watch) -> tuple[str, str]:
    return watch.name, watch.namespace


def _counted(errors: Sequence[str]) -> str:
    if len(errors) < 2:
        return "".join(errors)
    return f"{errors[0]}; and {len(errors) - 1} more"


def _watch(watches: Watches, place: Place, watching: RunningWatch) -> Watch:
    resource, namespace = place
    figures = watching.figures
    return Watch(
        resource.name,
        namespace or "",
        heard=watching.heard,
        last_event=figures.last_event,
        last_list=figures.last_list,
        relists=figures.relists,
        events=figures.events,
        errors={str(reason): count for reason, count in sorted(figures.errors.items())},
        error=figures.error,
        error_since=figures.error_since,
        needed=not without(watches.scope, place),
    )
