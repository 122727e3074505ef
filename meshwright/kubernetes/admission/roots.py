"""Whom API servers trust to be the webhook: the roots of all servers that stand behind one configuration.

Replicas may have CAs of their own, and while a CA is replaced some have the old one. Each has its roots in
the one bundle, as API servers with several CAs do among themselves, and says in an annotation when it last
had them there. Roots of which nobody has said so for an hour are nobody's any more; those of which nobody
ever has are a mistake.
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
"""The annotation: of each root, by its SHA-256, when a server last had it in the bundle."""

KEPT: Final = timedelta(hours=1)
"""For how long others' roots are kept of which nobody says anything more."""

RENEWED: Final = timedelta(minutes=20)
"""After how long it is said anew that ours are ours, where there are others."""

MOST: Final = 16
"""How many roots of others are kept: of a server that makes new ones at each start there is an end."""


@dataclass(frozen=True, slots=True)
class TrustedRoots:
    """Roots, and when of each it was last said that it is somebody's, by fingerprint."""

    bundle: TrustBundle
    said: Mapping[str, datetime] = field(default_factory=dict)


def trusting(wanted: Configuration, found: object, now: datetime, *, settled: bool) -> Configuration:
    """Return a configuration with others' roots, as one that was found has them, beside its own.

    Until what there is has `settled` after a start, nobody's are left out: others may be about to say theirs.
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
    """Return the roots by which API servers verify all webhooks of these names in a configuration."""
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
    """Return the roots that are to be trusted: ours, and those that others have said are theirs."""
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
    """Say whether others' roots are still believed to be theirs: clocks may differ, but not by so much."""
    return now - said > -RENEWED and (not settled or now - said < KEPT)


def _trusted(found: object, names: Collection[str]) -> TrustedRoots:
    """Return what a configuration says of roots; whatever in it is none is left out."""
    there = _mapping(found)
    annotations = _mapping(_mapping(there.get("metadata")).get("annotations"))
    try:
        return TrustedRoots(_bundle(there, names), dict(_moments(json.loads(annotations.get(SAID, "")))))
    except (TypeError, ValueError, RecursionError):
        return TrustedRoots(TrustBundle.of([]))


def _bundle(configuration: Mapping[str, Any], names: Collection[str]) -> TrustBundle:
    """Return the roots of the webhooks of these names. Raises ValueError."""
    found = configuration.get("webhooks")
    webhooks = [_mapping(each) for each in (found if isinstance(found, list) else ())]
    configs = [_mapping(each.get("clientConfig")) for each in webhooks if each.get("name") in names]
    return TrustBundle.of([base64.b64decode(str(each.get("caBundle") or "")) for each in configs])


def _moments(said: object) -> Iterator[tuple[str, datetime]]:
    for each, at in _mapping(said).items():
        moment = datetime.fromisoformat(str(at))
        if moment.tzinfo is not None:
            yield str(each), moment


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
