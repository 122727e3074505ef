"""One issuer after another: both are trusted until all that the former has signed is over. Values only.

An issuer is another one because it was told to be, or because it signs with another root than before. What
the former has signed lives on, with machines that may be away; and what the new one signs is believed by
nobody who has not heard of its root yet.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from certs.keys.bundle import TrustBundle

SETTLING: Final = timedelta(minutes=1)
"""So long after a root was first trusted only those have a certificate below it who have none to go on with:
time for sidecars to come back after a restart. Then those that are here must have taken it."""


@dataclass(frozen=True, slots=True)
class FormerIssuer:
    """Roots of an issuer that signs no more, and the end of the last certificate below them."""

    roots: TrustBundle
    until: datetime


@dataclass(frozen=True, slots=True)
class Succession:
    """Which issuer signs, by a name that is its own, with which roots; who was before; when it is settled.

    It is settled at `settled` at the earliest, and once it is `heard`: all who were there have taken its
    roots.
    """

    name: str
    roots: TrustBundle
    settled: datetime
    formers: tuple[FormerIssuer, ...] = field(default=())
    heard: bool = True

    @property
    def trusted(self) -> TrustBundle:
        """Return all roots that are to be trusted."""
        return TrustBundle.of((self.roots.pem, *(each.roots.pem for each in self.formers)))

    def lasting(self, now: datetime) -> "Succession":
        """Return it without those formers of whom nothing is left.

        Roots that are in force again are no former's: who signs decides when they are trusted no more.
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
    """Return who signs after this: the issuer of this name, with these roots.

    `ends` is the end of the last certificate that was issued until now; None where none was. `drops` says
    that an issuer of the same name decides itself when a root of its own is not trusted any more; `settling`
    is how long it takes until all have heard of a root.
    """
    known = before.trusted
    gone = set(before.roots.fingerprints) - set(roots.fingerprints)
    formers = before.formers
    if gone and ends is not None and now < ends and not (drops and name == before.name):
        formers = (*formers, FormerIssuer(before.roots, ends))
    news = not known.holds(roots) and ends is not None and now < ends
    settled = now + settling if news else before.settled
    return Succession(name, roots, settled, formers, before.heard and not news).lasting(now)


def written(succession: Succession) -> bytes:
    """Return it as JSON, as `read` takes it."""
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
    """Read what was written; raise ValueError for anything else."""
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
        raise ValueError(f"it lacks {error}, or has it in another form") from error


def _former(found: Mapping[str, str]) -> FormerIssuer:
    return FormerIssuer(_bundle(found["roots"]), _moment(found["until"]))


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} is no moment with a time zone")
    return moment


def _text(bundle: TrustBundle) -> str:
    return bundle.pem.decode("ascii")


def _bundle(text: str) -> TrustBundle:
    return TrustBundle.of([text.encode("ascii")])
