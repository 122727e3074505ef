"""Self-check of a server: compare the served snapshots with a computation from scratch."""

import asyncio
from collections.abc import Iterator

import structlog

from catalog.store.view import View
from meshwright.delivery.meters import WaveMeter
from meshwright.delivery.model import Inputs, Model
from meshwright.delivery.publisher import Publisher
from meshwright.delivery.quarantine.fallback import Exclusions
from meshwright.delivery.snapshots.group_snapshots import GroupSnapshots
from meshwright.delivery.snapshots.published_snapshots import PublishedSnapshots
from meshwright.delivery.snapshots.rendering import Translate
from xds.protocol.resources.snapshot import Snapshot

_log = structlog.get_logger("delivery.loop")


class Verification:
    """Comparison of the served snapshots with a computation from scratch, after each wave and batch."""

    def __init__(self, meter: WaveMeter) -> None:
        self._meter = meter

    async def after_wave(self, model: Model, publishing: Publisher) -> None:
        """Compare in a thread.

        The wave waits for the result, so the served snapshots do not change meanwhile.
        """
        served, exclusions = publishing.quarantine.served(), publishing.quarantine.exclusions()
        inputs = model.inputs()
        self.on_verified(
            await asyncio.to_thread(verify, inputs, model.serving.rendering.translate, served, exclusions)
        )

    def on_verified(self, differences: tuple[str, ...]) -> None:
        """Count a comparison, and log each difference as an error."""
        self._meter.verified(len(differences))
        for difference in differences:
            _log.error("served configuration differs from a full recomputation", difference=difference)


def verify(
    inputs: Inputs,
    translate: Translate,
    served: PublishedSnapshots,
    exclusions: Exclusions,
) -> tuple[str, ...]:
    """Return the differences between the served snapshots and a computation from scratch; empty if equal.

    Compares every proxy, every group, and every byte. A group that fails in both is equal. Exclusions by the
    quarantine are an input, because they depend on the proxies' answers. For example: `"proxy a.b.c: Cluster
    shop/cart"`.
    """
    # No value of the running model is used, so a fault in the incremental computation cannot hide itself.
    expected = compute_from_inputs(inputs, translate)
    return tuple(_differences(expected, served, exclusions))


def compute_from_inputs(inputs: Inputs, translate: Translate) -> PublishedSnapshots:
    """Compute all snapshots from their inputs alone, with a new view."""
    view = View(inputs.settings)
    serving = GroupSnapshots(view, translate, inputs.wanted)
    view.apply(inputs.known)
    serving.rendering.certify(inputs.certificates, inputs.trust_bundle)
    steps = [step for step in serving.steps(PublishedSnapshots(), serving.touched()) if step is not None]
    return steps[-1].after(PublishedSnapshots())


def _differences(
    expected: PublishedSnapshots, published: PublishedSnapshots, exclusions: Exclusions
) -> Iterator[str]:
    failed = set(expected.failed)
    if failed != set(published.failed):
        yield f"groups that fail: {sorted(published.failed)} instead of {sorted(failed)}"
    for node in sorted({*expected.members, *published.members}):
        wanted, snapshot = expected.snapshot(node), published.snapshot(node)
        # A group that fails keeps the proxy's last snapshot, which no computation from scratch can know.
        if wanted is None and (published.members.get(node) or "").startswith("kept:"):
            continue
        if wanted is None or snapshot is None:
            yield f"proxy {node} is {'served' if snapshot else 'not served'}"
        else:
            due = exclusions.instead_of(node, wanted)
            yield from (f"proxy {node}: {what}" for what in _resource_differences(due, snapshot))


def _resource_differences(wanted: Snapshot, snapshot: Snapshot) -> Iterator[str]:
    for type_url in sorted({*wanted.types(), *snapshot.types()}):
        one, other = wanted.resources(type_url), snapshot.resources(type_url)
        for name in sorted({*one, *other}):
            if name not in one or name not in other or one[name].body != other[name].body:
                yield f"{type_url.rpartition('.')[2]} {name}"
        if wanted.version(type_url) != snapshot.version(type_url):
            yield f"version of {type_url.rpartition('.')[2]}"
