"""The resources of one type that a client has rejected, and resources that it may have lost with them."""

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from xds.protocol.resources.name_sets import NO_NAMES, Names, joined, without
from xds.protocol.resources.resource import ResourceName, Version
from xds.protocol.subscription import FULL_STATE
from xds.protocol.wire import ERROR_LIMIT, Rejection, Response

APPLIED_OTHERS = ("Error adding/updating cluster(s)", "Error adding/updating listener(s)")
"""Prefixes of Envoy's error message after it examined each resource separately (Envoy 1.36 to 1.40)."""


def blamed(response: Response, rejection: Rejection) -> tuple[dict[ResourceName, Version], set[ResourceName]]:
    """Return the rejected resources of a response with their versions, and names that may be lost.

    After a message with a prefix of APPLIED_OTHERS Envoy has applied the good clusters and listeners, and
    names the bad ones (rule N3). In any other case Envoy has applied some of the response or nothing, so good
    resources may be missing too. A message without a resource's name, cut at ERROR_LIMIT, or about a type
    without full lists blames every resource. For example, `Error adding/updating listener(s) a: no filters`
    blames `a` alone.
    """
    versions = {resource.name: resource.version for resource in response.resources}
    if response.type_url not in FULL_STATE or len(rejection.message) >= ERROR_LIMIT:
        return versions, set(versions)
    named = {
        name: version
        for name, version in versions.items()
        # A name must stand alone: `inbound|80` is not a mention of `inbound|8080`, nor `v1/web` one of `web`.
        if re.search(rf"(?<![\w|/.-]){re.escape(name)}(?![\w|/.-])", rejection.message)
    }
    if not named:
        return versions, set(versions)
    applied = rejection.message.startswith(APPLIED_OTHERS)
    return named, set() if applied else versions.keys() - named.keys()


def message_about(rejection: Rejection, name: ResourceName, named: AbstractSet[ResourceName]) -> str:
    """Return the part of an error message about one of the `named` resources, or the whole message.

    With a prefix of APPLIED_OTHERS Envoy writes one or more lines for each resource, beginning with the name.
    """
    words = rejection.message
    start = next((item for item in APPLIED_OTHERS if words.startswith(item)), "")
    if not start:
        return words
    # Longest first, because the alternation takes the first match and one name may be a prefix of another.
    names = "|".join(re.escape(resource_name) for resource_name in sorted(named, key=len, reverse=True))
    parts = re.split(rf"(?m)^(?=(?:{names}): )", words.removeprefix(start).strip())
    about = [part.strip() for part in parts if part.startswith(f"{name}: ")]
    return f"{start} {about[0]}" if about else words


@dataclass(slots=True)
class Blame:
    """The rejection in force, if any, with the rejected versions.

    `suspected` are resources of a rejected response that may be good: the client may lack them. With `retry`
    they are sent once more, after the next accepted response.
    """

    rejection: Rejection | None = None
    rejected: dict[ResourceName, Version] = field(default_factory=dict)
    suspected: Names = NO_NAMES
    retry: bool = False

    def __bool__(self) -> bool:
        return bool(self.rejected or self.suspected)

    def concerns(self, names: AbstractSet[ResourceName]) -> bool:
        """Return whether one of the names was rejected, or may be lost because of a rejection."""
        return not (names.isdisjoint(self.suspected) and names.isdisjoint(self.rejected))

    def accept(self, names: AbstractSet[ResourceName]) -> None:
        """Remove names accepted by the client, or not wanted any more.

        The last removal ends the rejection.
        """
        for name in names & self.rejected.keys():
            del self.rejected[name]
        self.suspected = without(self.suspected, names)
        if not self.rejected:
            self.rejection = None

    def suspect(self, names: AbstractSet[ResourceName]) -> None:
        """Record names that the client may lack because of a bad resource in the same response."""
        self.suspected = joined(self.suspected, names)
