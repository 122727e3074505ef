"""What a client has rejected of one type, and what that may have cost it."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xds.protocol.resources.name_sets import NO_NAMES, Names, joined, without
from xds.protocol.resources.resource import ResourceName, Version
from xds.protocol.subscription import FULL_STATE
from xds.protocol.wire import ERROR_LIMIT, Rejection, Response

APPLIED_OTHERS = ("Error adding/updating cluster(s)", "Error adding/updating listener(s)")
"""How Envoy's words begin when it has looked at each resource by itself (1.36 to 1.40)."""


def blamed(response: Response, rejection: Rejection) -> tuple[dict[ResourceName, Version], set[ResourceName]]:
    """Return which resources of a response a rejection is about, with their versions, and which it may cost.

    An Envoy that says APPLIED_OTHERS has applied the good clusters and listeners, and names the bad ones
    (N3). In any other case it has taken nothing, or some, and those that are not at fault may be missing.
    Words that name none, or were cut, or are about another type, blame all.
    """
    versions = {resource.name: resource.version for resource in response.resources}
    if response.type_url not in FULL_STATE or len(rejection.message) >= ERROR_LIMIT:
        return versions, set(versions)
    named = {
        name: version
        for name, version in versions.items()
        if re.search(rf"(?<![\w|/.-]){re.escape(name)}(?![\w|/.-])", rejection.message)
    }
    if not named:
        return versions, set(versions)
    applied = rejection.message.startswith(APPLIED_OTHERS)
    return named, set() if applied else versions.keys() - named.keys()


def said_of(rejection: Rejection, name: ResourceName, named: AbstractSet[ResourceName]) -> str:
    """Return what a client said of one resource of those it named; all its words where they are about all.

    An Envoy that looked at each by itself has a line for each, or more than one, beginning with the name.
    """
    words = rejection.message
    start = next((each for each in APPLIED_OTHERS if words.startswith(each)), "")
    if not start:
        return words
    names = "|".join(re.escape(each) for each in sorted(named, key=len, reverse=True))
    parts = re.split(rf"(?m)^(?=(?:{names}): )", words.removeprefix(start).strip())
    about = [part.strip() for part in parts if part.startswith(f"{name}: ")]
    return f"{start} {about[0]}" if about else words


@dataclass(slots=True)
class Blame:
    """The rejection that stands, if any, and the versions that it is about.

    `suspected` are resources that stood in a rejected response and may be good: the client may have none of
    them, and with `retry` they are sent once more after the next that it accepts.
    """

    rejection: Rejection | None = None
    rejected: dict[ResourceName, Version] = field(default_factory=dict)
    suspected: Names = NO_NAMES
    retry: bool = False

    def __bool__(self) -> bool:
        return bool(self.rejected or self.suspected)

    def concerns(self, names: AbstractSet[ResourceName]) -> bool:
        """Say whether one of these names was rejected or may have been lost with what was."""
        return not (names.isdisjoint(self.suspected) and names.isdisjoint(self.rejected))

    def accept(self, names: AbstractSet[ResourceName]) -> None:
        """Take it that these are good, or not wanted; the rejection ends with the last that it is about."""
        for name in names & self.rejected.keys():
            del self.rejected[name]
        self.suspected = without(self.suspected, names)
        if not self.rejected:
            self.rejection = None

    def suspect(self, names: AbstractSet[ResourceName]) -> None:
        """Take it that the client may be without these, for the sake of a bad neighbour."""
        self.suspected = joined(self.suspected, names)
