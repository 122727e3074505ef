"""Tests of fallback snapshots: consistent, and without the rejected versions."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from meshwright.delivery.quarantine.fallback import Exclusion, Fallback, fallback
from xds.protocol.resources.resource import (
    CLUSTER,
    ENDPOINT,
    LISTENER,
    ROUTE,
    SECRET,
    TYPES,
    Reference,
    Resource,
    ResourceName,
    TypeUrl,
    Version,
)
from xds.protocol.resources.snapshot import Snapshot

REFERS_TO: Mapping[TypeUrl, tuple[TypeUrl, ...]] = {
    LISTENER: (ROUTE, CLUSTER, SECRET),
    ROUTE: (CLUSTER,),
    CLUSTER: (ENDPOINT, SECRET),
}
SOMETHING = (CLUSTER, ENDPOINT, ROUTE)


def _resource(type_url: TypeUrl, name: str, version: str = "1", *references: Reference) -> Resource:
    return Resource(type_url, ResourceName(name), Version(version), b"", tuple(sorted(references)))


def _key(resource: Resource) -> Reference:
    return resource.type_url, resource.name


def _empty(key: Reference) -> Resource | None:
    return _resource(key[0], key[1], "empty") if key[0] in SOMETHING else None


def _refused(*rejected: Resource, good: tuple[Resource, ...] = ()) -> Exclusion:
    versions: dict[Reference, frozenset[Version]] = {}
    for resource in rejected:
        versions[_key(resource)] = versions.get(_key(resource), frozenset()) | {resource.version}
    return Exclusion(versions, {_key(resource): resource for resource in good})


def _ref(resource: Resource) -> Reference:
    return _key(resource)


ENDPOINTS = _resource(ENDPOINT, "new")
NEW_CLUSTER = _resource(CLUSTER, "new", "1", _ref(ENDPOINTS))
OLD_ENDPOINTS = _resource(ENDPOINT, "old")
OLD_CLUSTER = _resource(CLUSTER, "old", "1", _ref(OLD_ENDPOINTS))
OLD_ROUTE = _resource(ROUTE, "r", "1", _ref(OLD_CLUSTER))
NEW_ROUTE = _resource(ROUTE, "r", "2", _ref(NEW_CLUSTER))
LISTENS = _resource(LISTENER, "l", "1", _ref(NEW_ROUTE))
OWN = Snapshot.of((ENDPOINTS, NEW_CLUSTER, NEW_ROUTE, LISTENS))


def test_last_good_version_is_served_with_its_references() -> None:
    """The group no longer has the old cluster, but the old route refers to it."""
    good = (OLD_ROUTE, OLD_CLUSTER, OLD_ENDPOINTS)
    assert fallback(OWN, _refused(NEW_ROUTE, good=good), _empty) == Fallback(
        Snapshot.of((ENDPOINTS, NEW_CLUSTER, LISTENS, *good)),
        {_key(resource): resource for resource in good},
        {_key(resource): resource for resource in good},
    )


def test_resource_without_a_good_version_is_replaced_by_an_empty_one() -> None:
    """The listener refers to the route, so removing the route would remove the listener too."""
    result = fallback(OWN, _refused(NEW_ROUTE), _empty)
    stub = _resource(ROUTE, "r", "empty")
    assert result == Fallback(
        Snapshot.of((ENDPOINTS, NEW_CLUSTER, LISTENS, stub)), {_key(stub): stub}, {_key(stub): None}
    )


def test_missing_reference_of_a_good_version_is_replaced_by_an_empty_one() -> None:
    """The old cluster is not remembered, so calls of the old route end at an empty cluster."""
    result = fallback(OWN, _refused(NEW_ROUTE, good=(OLD_ROUTE,)), _empty)
    stub = _resource(CLUSTER, "old", "empty")
    assert result.instead == {_key(OLD_ROUTE): OLD_ROUTE, _key(stub): stub}
    assert result.looked_up.keys() == {_key(OLD_ROUTE), _key(stub)}


def test_rejected_listener_is_left_out() -> None:
    """No other resource refers to a listener."""
    result = fallback(OWN, _refused(LISTENS), _empty)
    assert result.instead == {_key(LISTENS): None}
    assert result.snapshot == Snapshot.of((ENDPOINTS, NEW_CLUSTER, NEW_ROUTE))


def test_rejected_secret_is_replaced_by_a_good_one_or_stays() -> None:
    """Without any secret, every resource that refers to it would fail."""
    old, new = _resource(SECRET, "s", "1"), _resource(SECRET, "s", "2")
    user = _resource(LISTENER, "l", "1", _ref(new))
    own = Snapshot.of((new, user))
    assert fallback(own, _refused(new), _empty).snapshot is own
    assert fallback(own, _refused(new, good=(old,)), _empty).instead == {_key(old): old}


def test_good_version_with_an_unavailable_secret_is_replaced_by_an_empty_one() -> None:
    """A secret has no empty form, so the cluster that needs it becomes empty."""
    secret = _resource(SECRET, "gone")
    old = _resource(CLUSTER, "c", "1", _ref(secret))
    new = _resource(CLUSTER, "c", "2")
    result = fallback(Snapshot.of((new,)), _refused(new, good=(old,)), _empty)
    assert result.instead == {_key(new): _resource(CLUSTER, "c", "empty")}


def test_references_of_an_unusable_good_version_are_dropped() -> None:
    """The route's cluster was found but its secret was not, so the cluster is not needed either."""
    secret = _resource(SECRET, "gone")
    old = _resource(ROUTE, "r", "1", _ref(OLD_CLUSTER), _ref(secret))
    result = fallback(OWN, _refused(NEW_ROUTE, good=(old, OLD_CLUSTER, OLD_ENDPOINTS)), _empty)
    assert result.instead == {_key(old): _resource(ROUTE, "r", "empty")}


def test_rejected_substitute_is_not_served() -> None:
    """If the good and the empty version are rejected, the route and its listener are left out."""
    good = (OLD_ROUTE, OLD_CLUSTER, OLD_ENDPOINTS)
    result = fallback(OWN, _refused(NEW_ROUTE, OLD_ROUTE, good=good), _empty)
    assert result.instead == {_key(OLD_ROUTE): _resource(ROUTE, "r", "empty")}
    everything = _refused(NEW_ROUTE, OLD_ROUTE, _resource(ROUTE, "r", "empty"), good=good)
    assert fallback(OWN, everything, _empty).snapshot == Snapshot.of((ENDPOINTS, NEW_CLUSTER))


def test_version_other_than_the_rejected_one_is_served() -> None:
    """A changed input leads to another version, which the proxy may accept."""
    assert fallback(OWN, _refused(OLD_ROUTE), _empty).snapshot is OWN


NAMES = st.sampled_from("ab")


@st.composite
def _resources(draw: st.DrawFn) -> tuple[Resource, ...]:
    """Draw some resources, which may have missing references."""
    resources: dict[Reference, Resource] = {}
    for type_url in TYPES:
        for name in draw(st.sets(NAMES)):
            to = [(kind, ResourceName(item)) for kind in REFERS_TO.get(type_url, ()) for item in "ab"]
            references = draw(st.sets(st.sampled_from(to))) if to else set()
            made = _resource(type_url, name, draw(st.sampled_from("123")), *references)
            resources[_key(made)] = made
    return tuple(resources.values())


@st.composite
def _consistent(draw: st.DrawFn) -> Snapshot:
    snapshot = Snapshot.of(draw(_resources()))
    while missing := snapshot.missing():
        snapshot = snapshot.changed(removed=[_key(source) for source, _, _ in missing])
    return snapshot


VERSIONS = st.frozensets(st.sampled_from([Version(item) for item in ("1", "2", "3", "empty")]), min_size=1)
KEYS = st.sampled_from([(kind, ResourceName(name)) for kind in TYPES for name in "ab"])


@given(_consistent(), _resources(), st.dictionaries(KEYS, VERSIONS))
def test_fallback_is_consistent_and_without_rejected_versions(
    own: Snapshot, good: tuple[Resource, ...], rejected: dict[Reference, frozenset[Version]]
) -> None:
    """Only a secret without a good version stays although rejected. `instead` describes the differences."""
    excluded = Exclusion(rejected, {_key(item): item for item in good})
    result = fallback(own, excluded, _empty)
    assert result.snapshot.missing() == ()
    served = {_key(item): item for kind in TYPES for item in result.snapshot.ordered(kind)}
    for key, resource in served.items():
        own_one = own.resources(key[0]).get(key[1])
        assert resource.version not in rejected.get(key, ()) or (key[0] == SECRET and resource is own_one)
    put = [item for item in result.instead.values() if item is not None]
    gone = [key for key, item in result.instead.items() if item is None]
    assert own.changed(put, gone) == result.snapshot
    assert all(own.resources(key[0]).get(key[1]) is not item for key, item in result.instead.items())


@given(_consistent(), _resources())
def test_fallback_without_a_rejection_is_the_snapshot_itself(
    own: Snapshot, good: tuple[Resource, ...]
) -> None:
    """Known good versions make no difference."""
    assert (
        fallback(own, Exclusion({}, {_key(resource): resource for resource in good}), _empty).snapshot is own
    )


@given(_consistent(), _resources(), st.dictionaries(KEYS, VERSIONS))
def test_only_the_asked_good_versions_affect_the_fallback(
    own: Snapshot, good: tuple[Resource, ...], rejected: dict[Reference, frozenset[Version]]
) -> None:
    """Therefore no other good versions need to be kept."""
    everything = {_key(resource): resource for resource in good}
    result = fallback(own, Exclusion(rejected, everything), _empty)
    kept = {key: resource for key, resource in everything.items() if key in result.looked_up}
    assert fallback(own, Exclusion(rejected, kept), _empty) == result
