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
    """Root certificates, and by fingerprint the time at which a server last confirmed each of them."""

    bundle: TrustBundle
    confirmed_at: Mapping[str, datetime] = field(default_factory=dict)


def trusting(wanted: Configuration, result: object, now: datetime, *, settled: bool) -> Configuration:
    """Return the configuration `wanted` with its own roots and with the other servers' roots from `result`.

    `settled` is False soon after a start. Until then roots without a recent confirmation stay, because their
    servers may be about to confirm them.
    """
    names = names_of(wanted)
    trusted = agreed(_bundle(wanted, names), _trusted(result, names), now, settled=settled)
    bundle = base64.b64encode(trusted.bundle.pem).decode("ascii")
    dates = {item: f"{at:%Y-%m-%dT%H:%M:%SZ}" for item, at in sorted(trusted.confirmed_at.items())}
    webhooks = [
        {**webhook, "clientConfig": {**webhook["clientConfig"], "caBundle": bundle}}
        for webhook in wanted["webhooks"]
    ]
    metadata = {**wanted["metadata"], "annotations": {SAID: json.dumps(dates)}}
    return {**wanted, "metadata": metadata, "webhooks": webhooks}


def believed(result: object, names: Collection[str]) -> TrustBundle:
    """Return the roots with which API servers verify all webhooks with these names in a configuration."""
    webhooks = _mapping(result).get("webhooks")
    ours = [
        {"webhooks": [webhook]}
        for webhook in (webhooks if isinstance(webhooks, list) else ())
        if _mapping(webhook).get("name") in names
    ]
    try:
        bundles = [_bundle(item, names) for item in ours]
    except ValueError:
        bundles = []
    if not bundles:
        return TrustBundle.from_pems([])
    everywhere = set.intersection(*(set(bundle.fingerprints) for bundle in bundles))
    return bundles[0].among(everywhere)


def agreed(ours: TrustBundle, there: TrustedRoots, now: datetime, *, settled: bool) -> TrustedRoots:
    """Return the roots for the webhook's `caBundle`: ours, and those confirmed recently by other servers."""
    others = {
        fingerprint: there.confirmed_at[fingerprint]
        for fingerprint in there.bundle.fingerprints
        if fingerprint in there.confirmed_at
        and fingerprint not in ours.fingerprints
        and _counts(there.confirmed_at[fingerprint], now, settled)
    }
    newest = sorted(others, key=lambda item: (others[item], item))[-MOST:]
    moments = {item: others[item] for item in newest}
    for fingerprint in ours.fingerprints:
        before = there.confirmed_at.get(fingerprint)
        is_fresh = before is not None and (not newest or timedelta() <= now - before < RENEWED)
        moments[fingerprint] = (
            before if before is not None and is_fresh else now.astimezone(UTC).replace(microsecond=0)
        )
    return TrustedRoots(ours.union(there.bundle.among(newest)), moments)


def _counts(confirmed: datetime, now: datetime, settled: bool) -> bool:
    """Return whether another server's confirmation is still valid.

    A confirmation in the future is accepted up to RENEWED, because clocks may differ.
    """
    return now - confirmed > -RENEWED and (not settled or now - confirmed < KEPT)


def _trusted(result: object, names: Collection[str]) -> TrustedRoots:
    """Return the confirmed roots in a configuration, or an empty bundle if they cannot be parsed."""
    there = _mapping(result)
    annotations = _mapping(_mapping(there.get("metadata")).get("annotations"))
    try:
        return TrustedRoots(_bundle(there, names), dict(_moments(json.loads(annotations.get(SAID, "")))))
    except (TypeError, ValueError, RecursionError):
        return TrustedRoots(TrustBundle.from_pems([]))


def _bundle(configuration: Mapping[str, Any], names: Collection[str]) -> TrustBundle:
    """Return all roots in the `caBundle` of the webhooks with these names. Raises ValueError."""
    result = configuration.get("webhooks")
    webhooks = [_mapping(item) for item in (result if isinstance(result, list) else ())]
    configs = [_mapping(webhook.get("clientConfig")) for webhook in webhooks if webhook.get("name") in names]
    return TrustBundle.from_pems([base64.b64decode(str(config.get("caBundle") or "")) for config in configs])


def _moments(annotation: object) -> Iterator[tuple[str, datetime]]:
    for item, at in _mapping(annotation).items():
        moment = datetime.fromisoformat(str(at))
        # A time without a time zone cannot be compared with the clock.
        if moment.tzinfo is not None:
            yield str(item), moment


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
