"""Root certificates with which API servers verify a webhook: those of all servers behind a configuration.

Replicas may have CAs of their own, and while a CA is replaced some replicas still use the old one. Each
server adds its roots to the common bundle, as API servers with several CAs do, and records the time in an
annotation. Other servers remove roots whose record is an hour old, because their server no longer renews it,
and roots without a record, because they are a mistake.
"""

import base64
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from certs.keys.bundle import TrustBundle
from meshwright.kubernetes.admission.configuration import Configuration, names_of

SAID: Final = "meshwright.dev/roots"
"""Annotation with the time at which a server last confirmed each root, by the root's SHA-256 fingerprint.

For example `{"5f3a...": "2026-11-02T10:15:00Z"}`.
"""

KEPT: Final = timedelta(hours=1)
"""Time for which another server's root stays in the bundle after its last confirmation."""

RENEWED: Final = timedelta(minutes=20)
"""Age at which our own confirmation is renewed, if other servers have roots in the bundle."""

MOST: Final = 16
"""Maximum number of other servers' roots. Bounded, because a server may create a new root at each start."""


@dataclass(frozen=True, slots=True)
class TrustedRoots:
    """Root certificates, and the time of the last confirmation of each, by fingerprint."""

    bundle: TrustBundle
    said: Mapping[str, datetime] = field(default_factory=dict)


def trusting(wanted: Configuration, found: object, now: datetime, *, settled: bool) -> Configuration:
    """Return the configuration `wanted` with its own roots and with the other servers' roots from `found`.

    `settled` is False soon after a start. Until then roots without a recent confirmation stay, because their
    servers may be about to confirm them.
    """
    names = names_of(wanted)
    trusted = agreed(_bundle(wanted, names), _trusted(found, names), now, settled=settled)
    bundle = base64.b64encode(trusted.bundle.pem).decode("ascii")
    said = {each: f"{at:%Y-%m-%dT%H:%M:%SZ}" for each, at in sorted(trusted.said.items())}
    webhooks = [
        {**each, "clientConfig": {**each["clientConfig"], "caBundle": bundle}} for each in wanted["webhooks"]
    ]
    metadata = {**wanted["metadata"], "annotations": {SAID: json.dumps(said)}}
    return {**wanted, "metadata": metadata, "webhooks": webhooks}


def believed(found: object, names: Collection[str]) -> TrustBundle:
    """Return the roots with which API servers verify all webhooks with these names in a configuration."""
    webhooks = _mapping(found).get("webhooks")
    ours = [
        {"webhooks": [each]}
        for each in (webhooks if isinstance(webhooks, list) else ())
        if _mapping(each).get("name") in names
    ]
    try:
        bundles = [_bundle(each, names) for each in ours]
    except ValueError:
        bundles = []
    if not bundles:
        return TrustBundle.of([])
    everywhere = set.intersection(*(set(each.fingerprints) for each in bundles))
    return bundles[0].among(everywhere)


def agreed(ours: TrustBundle, there: TrustedRoots, now: datetime, *, settled: bool) -> TrustedRoots:
    """Return the roots to trust: ours, and the roots that other servers have confirmed."""
    others = {
        each: there.said[each]
        for each in there.bundle.fingerprints
        if each in there.said and each not in ours.fingerprints and _counts(there.said[each], now, settled)
    }
    newest = sorted(others, key=lambda each: (others[each], each))[-MOST:]
    said = {each: others[each] for each in newest}
    for each in ours.fingerprints:
        before = there.said.get(each)
        is_fresh = before is not None and (not newest or timedelta() <= now - before < RENEWED)
        said[each] = before if before is not None and is_fresh else now.astimezone(UTC).replace(microsecond=0)
    return TrustedRoots(ours.union(there.bundle.among(newest)), said)


def _counts(said: datetime, now: datetime, settled: bool) -> bool:
    """Return whether another server's confirmation is still valid.

    A confirmation in the future is accepted up to RENEWED, because clocks may differ.
    """
    return now - said > -RENEWED and (not settled or now - said < KEPT)


def _trusted(found: object, names: Collection[str]) -> TrustedRoots:
    """Return the confirmed roots in a configuration, or an empty bundle if they cannot be parsed."""
    there = _mapping(found)
    annotations = _mapping(_mapping(there.get("metadata")).get("annotations"))
    try:
        return TrustedRoots(_bundle(there, names), dict(_moments(json.loads(annotations.get(SAID, "")))))
    except (TypeError, ValueError, RecursionError):
        return TrustedRoots(TrustBundle.of([]))


def _bundle(configuration: Mapping[str, Any], names: Collection[str]) -> TrustBundle:
    """Return the roots of the webhooks with these names. Raises ValueError."""
    found = configuration.get("webhooks")
    webhooks = [_mapping(each) for each in (found if isinstance(found, list) else ())]
    configs = [_mapping(each.get("clientConfig")) for each in webhooks if each.get("name") in names]
    return TrustBundle.of([base64.b64decode(str(each.get("caBundle") or "")) for each in configs])


def _moments(said: object) -> Iterator[tuple[str, datetime]]:
    for each, at in _mapping(said).items():
        moment = datetime.fromisoformat(str(at))
        # A time without a time zone cannot be compared with the clock.
        if moment.tzinfo is not None:
            yield str(each), moment


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
