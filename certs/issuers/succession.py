"""Succession of issuers: both are trusted until all certificates of the former one have ended. A pure module.

An issuer is new if the name or a root differs from before. Certificates of the former issuer are still in
use, possibly on disconnected machines. Certificates of the new issuer are accepted only by peers with the new
root.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from certs.keys.bundle import TrustBundle
from certs.state.json_fields import json_field, json_object, parse_time

SETTLING: Final = timedelta(minutes=1)
"""Time after which sidecars have reconnected after a restart and must have a new root.

Before, the new issuer signs only for identities without a usable certificate.
"""


@dataclass(frozen=True, slots=True)
class FormerIssuer:
    """Roots of a former issuer, and the time when its last certificate ends."""

    roots: TrustBundle
    until: datetime


@dataclass(frozen=True, slots=True)
class Succession:
    """The signing issuer by a unique name, with the roots and the predecessors.

    The issuer is settled at `settled` at the earliest, and only if `is_acknowledged`: all connected
    sidecars have acknowledged the roots.
    """

    name: str
    roots: TrustBundle
    settled: datetime
    formers: tuple[FormerIssuer, ...] = field(default=())
    is_acknowledged: bool = True

    @property
    def trusted(self) -> TrustBundle:
        """Return the roots of the current issuer and of all former ones, which must be trusted."""
        return TrustBundle.from_pems(
            (self.roots.pem, *(former_issuer.roots.pem for former_issuer in self.formers))
        )

    def lasting_until(self, roots: TrustBundle, end: datetime) -> "Succession":
        """Return the succession with the predecessor of these roots trusted until `end` or longer."""
        formers = tuple(
            replace(former_issuer, until=max(former_issuer.until, end))
            if former_issuer.roots == roots
            else former_issuer
            for former_issuer in self.formers
        )
        return self if formers == self.formers else replace(self, formers=formers)

    def lasting(self, now: datetime) -> "Succession":
        """Return the succession without predecessors after the end of their last certificate.

        A root in use again is removed from the predecessors: the issuer decides how long to trust the root.
        """
        own = set(self.roots.fingerprints)
        others = (
            replace(
                former_issuer, roots=former_issuer.roots.among(set(former_issuer.roots.fingerprints) - own)
            )
            for former_issuer in self.formers
        )
        left = tuple(
            former_issuer
            for former_issuer in others
            if now < former_issuer.until and former_issuer.roots.fingerprints
        )
        return self if left == self.formers else replace(self, formers=left)


def followed(
    before: Succession,
    name: str,
    roots: TrustBundle,
    ends: datetime | None,
    now: datetime,
    *,
    drops: bool,
    settling: timedelta = SETTLING,
) -> Succession:
    """Return the succession after an issuer with this name and these roots took over.

    `ends` is the end of the last certificate issued until now, or None. With `drops` an issuer of the same
    name decides when a root of its own is not trusted any more. `settling` is the time until every sidecar
    has a new root. For example, a Vault replaces the built-in CA: the built-in root stays among `formers`
    until its last service certificate has ended.
    """
    known = before.trusted
    gone = set(before.roots.fingerprints) - set(roots.fingerprints)
    formers = before.formers
    # Former roots are needed only while a certificate of theirs may be valid.
    if gone and ends is not None and now < ends and not (drops and name == before.name):
        formers = (*formers, FormerIssuer(before.roots, ends))
    # A new root must be distributed first, unless there are no certificates, and so no peers, yet.
    news = not known.holds(roots) and ends is not None and now < ends
    settled = now + settling if news else before.settled
    return Succession(name, roots, settled, formers, before.is_acknowledged and not news).lasting(now)


def written(succession: Succession) -> bytes:
    """Return a succession as JSON, in the form parsed by `read`."""
    formers = [
        {"roots": _text(former_issuer.roots), "until": former_issuer.until.isoformat()}
        for former_issuer in succession.formers
    ]
    document = {
        "issuer": succession.name,
        "roots": _text(succession.roots),
        "settled": succession.settled.isoformat(),
        "heard": succession.is_acknowledged,
        "formers": formers,
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def read(content: bytes) -> Succession:
    """Parse a succession from the JSON of `written`. Raises ValueError, which names the field."""
    document = json_object(content)
    return Succession(
        json_field(document, "issuer", str),
        json_field(document, "roots", _bundle),
        json_field(document, "settled", parse_time),
        json_field(document, "formers", lambda items: tuple(map(_former, items))),
        # Earlier versions recorded no acknowledgements.
        json_field({"heard": True, **document}, "heard", bool),
    )


def _former(item: Mapping[str, Any]) -> FormerIssuer:
    return FormerIssuer(json_field(item, "roots", _bundle), json_field(item, "until", parse_time))


def _text(bundle: TrustBundle) -> str:
    return bundle.pem.decode("ascii")


def _bundle(text: str) -> TrustBundle:
    return TrustBundle.from_pems([text.encode("ascii")])
