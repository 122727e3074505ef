"""Tests of shared name lists: an equal list is parsed once, and each request is read as if alone."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.protocol.fields import fields as plain_fields
from xds.protocol.resources.name_sets import NameList, longest, names_of, text_bytes, text_of
from xds.protocol.resources.resource import ResourceName
from xds.protocol.wire import DeltaRequest, Request, WireError, length_delimited
from xds.server.streams import name_lists as module
from xds.server.streams.name_lists import READ, AnyRequest, NameLists
from xds.stream_status import Variant

BESIDE = {
    # For each variant: node, type_url, nonce, an unread field, and a node that contains name-like bytes.
    Variant.SOTW: [(2, b"\x0a\x01n"), (4, b"type"), (5, b"7"), (15, b"?"), (2, b"\x0a\x04\x1a\x02ab")],
    Variant.DELTA: [(1, b"\x0a\x01n"), (2, b"type"), (6, b"7"), (15, b"?"), (1, b"\x0a\x04\x1a\x02ab")],
}
FEW = st.lists(st.sampled_from(["a", "b", "é" * 70, "c" * 200, ""]), min_size=0, max_size=6)


@pytest.fixture(autouse=True, scope="module")
def short_lists() -> object:
    """Treat every request as long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LONG", 0)
        yield


def listed(names: Sequence[str]) -> bytes:
    """Encode names as repeated fields, as a client does."""
    return b"".join(length_delimited(3, name.encode()) for name in names)


def names_in(request: AnyRequest) -> tuple[ResourceName, ...]:
    """Return the names that a request subscribes to."""
    return request.names if isinstance(request, Request) else request.subscribe


def learnt(lists: NameLists, variant: Variant, data: bytes) -> AnyRequest:
    """Read a request twice, so that its list is known; return the second result."""
    lists.read(variant, data)
    return lists.read(variant, data)


def message(variant: Variant, parts: Sequence[int | Sequence[str]]) -> bytes:
    """Build a message of other fields (numbers are positions in BESIDE) and lists of names."""
    return b"".join(
        length_delimited(*BESIDE[variant][part]) if isinstance(part, int) else listed(part) for part in parts
    )


@pytest.mark.parametrize("variant", list(Variant))
@given(
    sent=st.lists(st.lists(st.one_of(st.integers(0, 4), FEW), max_size=5), min_size=1, max_size=6),
)
def test_request_is_read_correctly_whatever_was_read_before(
    variant: Variant, sent: list[list[int | list[str]]]
) -> None:
    """Fields may be in any order, and lists in several pieces. One list may be the beginning of another."""
    lists = NameLists()
    for parts in sent * 3:  # seen first, stored, known
        data = message(variant, parts)
        assert lists.read(variant, data) == READ[variant](data)


@pytest.mark.parametrize("variant", list(Variant))
def test_equal_lists_are_one_shared_object(variant: Variant) -> None:
    """Other fields of the request do not matter; a longer or shorter list is another object."""
    lists, names = NameLists(), [f"service-{n}" for n in range(100)]
    lists.read(variant, message(variant, [1, names]))
    sent: list[list[int | list[str]]] = [
        [0, 1, names],
        [4, 2, 1, names, 3],
        [0, names, ["one"]],
        [0, names[:50]],
    ]
    first, second, more, fewer = (lists.read(variant, message(variant, parts)) for parts in sent)

    assert names_in(first) is names_in(second)
    assert isinstance(names_in(first), NameList)
    assert names_in(more) == (*names, "one")
    assert names_in(fewer) == tuple(names[:50])
    assert names_in(fewer) is not names_in(first)


@pytest.mark.parametrize("variant", list(Variant))
def test_longest_known_list_is_used(variant: Variant) -> None:
    """Of two known lists that begin alike, the longer one is used for a request that contains it."""
    lists, names = NameLists(), [f"service-{n}" for n in range(100)]
    learnt(lists, variant, listed(names[:60]))
    # It begins with the first list, is read with that, and is not stored.
    assert names_in(learnt(lists, variant, listed(names))) == tuple(names)

    other = NameLists()
    whole = learnt(other, variant, listed(names))
    learnt(other, variant, listed(names[:60]))

    assert names_in(other.read(variant, listed(names))) is names_in(whole)


def test_list_sent_only_once_is_not_stored() -> None:
    """Only a list that is sent again is stored, so a client with ever new lists fills no memory."""
    lists = NameLists()
    for n in range(100):
        lists.read(Variant.DELTA, listed([f"{n}-{number}" for number in range(9)]))

    assert not lists._known
    assert len(lists._met) == module.LISTS


@pytest.mark.parametrize("variant", list(Variant))
def test_thousands_of_initial_versions_are_not_searched_for_a_list(variant: Variant) -> None:
    """The search stops early, because a client may report many versions and subscribe to no name."""
    lists = NameLists()
    answer = length_delimited(5, length_delimited(1, b"a") + length_delimited(2, b"1"))
    data = message(variant, [0, 1]) + answer * 5000 + listed(["late"])
    looked = []

    def fields(*of: object) -> Iterator[tuple[int, int, int, int]]:
        for plain_field in plain_fields(*of):  # type: ignore[arg-type]
            looked.append(plain_field)
            yield plain_field

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fields", fields)
        read = learnt(lists, variant, data)

    assert names_in(read) == ("late",)
    assert len(looked) < 20


@pytest.mark.parametrize("variant", list(Variant))
def test_invalid_request_is_refused_also_around_a_known_list(variant: Variant) -> None:
    """Bytes that are cut or damaged raise WireError, and the known list remains valid."""
    lists, data = NameLists(), message(variant, [1, ["a" * 9, "b" * 9]])
    whole = learnt(lists, variant, data)

    for spoilt in (data[:-1], b"\x0a\x7f" + data, data + b"\x0a\x7f", data + b"\x1a\x01\xff"):
        with pytest.raises(WireError):
            lists.read(variant, spoilt)
    assert lists.read(variant, data) == whole


def test_names_with_longer_length_prefixes_are_read_but_not_stored() -> None:
    """A length in two bytes is valid for one byte of text, but such an unusual list is parsed each time."""
    lists, data = NameLists(), b"\x1a\x81\x00a" * 3
    first, second = (learnt(lists, Variant.SOTW, data) for _ in range(2))

    assert names_in(first) == ("a", "a", "a")
    assert first == second
    assert names_in(first) is not names_in(second)


def test_long_error_does_not_make_a_short_list_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the length of the list counts, not the length of the whole request."""
    monkeypatch.setattr(module, "LONG", 4096)
    lists = NameLists()
    delta_discovery_request = discovery_pb2.DeltaDiscoveryRequest(resource_names_subscribe=["a"])
    delta_discovery_request.error_detail.message = "x" * 5000
    read = [learnt(lists, Variant.DELTA, delta_discovery_request.SerializeToString()) for _ in range(2)]

    assert names_in(read[0]) == ("a",)
    assert names_in(read[0]) is not names_in(read[1])


def test_stored_lists_are_bounded_in_number_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most recently used lists are kept.

    The bound on memory counts objects, which are larger than the bytes on the wire.
    """
    monkeypatch.setattr(module, "LISTS", 3)
    lists = NameLists()
    data = [listed([f"{n}-{number}" for number in range(9)]) for n in range(4)]
    kept = [names_in(learnt(lists, Variant.SOTW, item)) for item in data[:3]]
    assert names_in(lists.read(Variant.SOTW, data[0])) is kept[0]
    learnt(lists, Variant.SOTW, data[3])
    assert names_in(lists.read(Variant.SOTW, data[0])) is kept[0]
    assert names_in(lists.read(Variant.SOTW, data[1])) is not kept[1]

    monkeypatch.setattr(module, "BYTES", 2000)
    lists, many = NameLists(), listed(["a"] * 50)
    assert len(many) == 150
    result = [names_in(lists.read(Variant.SOTW, many)) for _ in range(3)]
    assert result[1] is not result[2]


@given(FEW)
def test_name_list_and_plain_tuple_give_the_same_results(names: list[str]) -> None:
    """Names, longest name and text size are equal for a shared list and a plain tuple."""
    plain = tuple(map(ResourceName, names))
    shared = NameList(plain)

    assert names_of(shared) == names_of(plain) == frozenset(plain)
    assert longest(shared) == longest(plain) == max(map(len, plain), default=0)
    assert text_of(names_of(shared), shared) == text_bytes(frozenset(plain))
    assert text_of(names_of(plain), plain) == text_bytes(frozenset(plain))
    some = frozenset(plain[:1])
    assert text_of(some, shared) == text_bytes(some)


def test_delta_request_with_a_known_list_keeps_its_other_fields() -> None:
    """Unsubscribed names and initial versions come from the request itself."""
    lists, names = NameLists(), [f"service-{n}" for n in range(100)]
    delta_discovery_request = discovery_pb2.DeltaDiscoveryRequest(
        resource_names_subscribe=names,
        resource_names_unsubscribe=["x"],
        initial_resource_versions={"a": "1"},
        type_url="type",
    )
    learnt(lists, Variant.DELTA, delta_discovery_request.SerializeToString())
    read = lists.read(Variant.DELTA, delta_discovery_request.SerializeToString())

    assert read == DeltaRequest("type", tuple(names), ("x",), {"a": "1"})  # type: ignore[arg-type,dict-item]
