"""Rejections by proxies in the state of a mesh, in the form that every place can have. A pure module."""

from collections.abc import Iterable, Mapping

from certs.ledger.entry import LedgerEntry
from meshwright.delivery.quarantine.verdict_fields import REJECTED, verdicts_in, with_verdicts
from meshwright.delivery.quarantine.verdicts import Verdict
from meshwright.records.content import Fields
from xds.cache import NodeKey


def transferable(verdicts: Iterable[Verdict], entries: Iterable[LedgerEntry]) -> tuple[Verdict, ...]:
    """Return the verdicts on proxies in the ledger as records have them, sorted by proxy and unit.

    A file in a state directory has longer texts, and more verdicts on one proxy, than a record.
    """
    names = {entry.common_name for entry in entries}
    by_proxy = by_name(verdict for verdict in verdicts if verdict.proxy in names)
    return tuple(
        verdict
        for name, known in sorted(by_proxy.items())
        for verdict in verdicts_in(NodeKey(name), with_verdicts(None, known)).verdicts
    )


def by_name(verdicts: Iterable[Verdict]) -> Mapping[str, tuple[Verdict, ...]]:
    """Return verdicts by the name of the proxy."""
    result: dict[str, tuple[Verdict, ...]] = {}
    for verdict in verdicts:
        result[verdict.proxy] = (*result.get(verdict.proxy, ()), verdict)
    return result


def with_rejections(fields: Fields | None, verdicts: Iterable[Verdict]) -> Fields | None:
    """Return the fields of a proxy's record with verdicts that it does not have; None for no change."""
    stored = (fields or {}).get(REJECTED)
    there = stored if isinstance(stored, dict) else {}
    return with_verdicts(fields, [verdict for verdict in verdicts if verdict.unit not in there])
