"""Succession of issuers: both are trusted until all certificates of the former one have ended. Values only.

A new issuer is one with another name, or with another root than before. Certificates of the former one are
still in use on machines that may be away. Certificates of the new one are accepted only by peers that have
its root already.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from certs.keys.bundle import TrustBundle

SETTLING: Final = timedelta(minutes=1)
"""Time after which sidecars have come back from a restart and must have taken a new root.

Before that only those get a certificate signed by it that have no usable one.
"""


@dataclass(frozen=True, slots=True)
class FormerIssuer:
    """Roots of an issuer that does not sign any more, and the end of its last certificate."""

    roots: TrustBundle
    until: datetime


@dataclass(frozen=True, slots=True)
class Succession:
    """The issuer that signs, by a unique name, with its roots and its predecessors.

    It is settled at `settled` at the earliest, and once it is `heard`: all sidecars that were connected have
    taken its roots.
    """

    name: str
    roots: TrustBundle
    settled: datetime
    formers: tuple[FormerIssuer, ...] = field(default=())
    heard: bool = True

    @property
    def trusted(self) -> TrustBundle:
        """Return all roots to trust."""
        return TrustBundle.of((self.roots.pem, *(each.roots.pem for each in self.formers)))

    def lasting(self, now: datetime) -> "Succession":
        """Return the succession without predecessors whose certificates have all ended.

        A root that is in use again is removed from the predecessors: the issuer decides how long to trust it.
        """
        own = set(self.roots.fingerprints)
        others = (
            replace(each, roots=each.roots.among(set(each.roots.fingerprints) - own)) for each in self.formers
        )
        left = tuple(each for each in others if now < each.until and each.roots.fingerprints)
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

    `ends` is the end of the last certificate issued until now, None if there is none. With `drops` an issuer
    of the same name decides itself when a root of its own is not trusted any more. `settling` is the time
    until everybody has a new root.
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
    return Succession(name, roots, settled, formers, before.heard and not news).lasting(now)


def written(succession: Succession) -> bytes:
    """Return the JSON that `read` parses."""
    formers = [{"roots": _text(each.roots), "until": each.until.isoformat()} for each in succession.formers]
    document = {
        "issuer": succession.name,
        "roots": _text(succession.roots),
        "settled": succession.settled.isoformat(),
        "heard": succession.heard,
        "formers": formers,
    }
    return json.dumps(document, indent=1).encode() + b"\n"


def read(content: bytes) -> Succession:
    """Parse the JSON of `written`. Raises ValueError for anything else."""
    try:
        document = json.loads(content)
        return Succession(
            str(document["issuer"]),
            _bundle(document["roots"]),
            _moment(document["settled"]),
            tuple(_former(each) for each in document["formers"]),
            bool(document.get("heard", True)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"a field is missing or has another form ({error})") from error


def _former(found: Mapping[str, str]) -> FormerIssuer:
    return FormerIssuer(_bundle(found["roots"]), _moment(found["until"]))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} is not a time with a time zone")
    return moment


def _text(bundle: TrustBundle) -> str:
    return bundle.pem.decode("ascii")


def _bundle(text: str) -> TrustBundle:
    return TrustBundle.of([text.encode("ascii")])
