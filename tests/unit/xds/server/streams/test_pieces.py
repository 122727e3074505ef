"""A long request in pieces says what it says whole, and is counted before it is made into objects."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protos.envoy.service.discovery.v3 import discovery_pb2
from xds.budget import Excess, LimitKind
from xds.limits import Limits
from xds.protocol.wire import ERROR_LIMIT, DeltaRequest, Rejection, WireError
from xds.server.streams import pieces as module
from xds.server.streams.name_lists import READ, AnyRequest
from xds.server.streams.pieces import joined, pieces
from xds.stream_status import Variant

NAMES = st.lists(st.text(max_size=200), max_size=30)
VERSIONS = st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=9)
WORDS = st.text(max_size=20)
LARGE = 1_000_000


@pytest.fixture(autouse=True, scope="module")
def few_fields() -> object:
    """Cut often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIELDS", 3)
        yield


def read(data: bytes, variant: Variant, limits: Limits | None = None) -> AnyRequest:
    """Read a request piece by piece."""
    return joined([READ[variant](piece) for piece in pieces(data, variant, limits or Limits())])


@given(NAMES, WORDS, WORDS, WORDS, WORDS, st.booleans())
def test_a_state_of_the_world_request(
    names: list[str], version: str, type_url: str, nonce: str, node: str, rejects: bool
) -> None:
    """Every field that is read, in every combination."""
    message = discovery_pb2.DiscoveryRequest(
        resource_names=names, version_info=version, type_url=type_url, response_nonce=nonce
    )
    if node:
        message.node.id = node
    if rejects:
        message.error_detail.code = 13
        message.error_detail.message = node

    data = message.SerializeToString()
    assert read(data, Variant.SOTW) == READ[Variant.SOTW](data)


@given(NAMES, NAMES, VERSIONS, WORDS, WORDS, WORDS)
def test_an_incremental_request(
    subscribe: list[str],
    unsubscribe: list[str],
    versions: dict[str, str],
    type_url: str,
    nonce: str,
    node: str,
) -> None:
    """The same, with what the client holds."""
    message = discovery_pb2.DeltaDiscoveryRequest(
        resource_names_subscribe=subscribe,
        resource_names_unsubscribe=unsubscribe,
        initial_resource_versions=versions,
        type_url=type_url,
        response_nonce=nonce,
    )
    if node:
        message.node.id = node

    data = message.SerializeToString()
    assert read(data, Variant.DELTA) == READ[Variant.DELTA](data)


@given(st.binary(max_size=60))
def test_what_is_no_request_is_refused_and_nothing_else_happens(data: bytes) -> None:
    """Any bytes: read in pieces they are refused wherever they are refused whole."""
    for variant in Variant:
        try:
            whole: AnyRequest | None = READ[variant](data)
        except WireError:
            whole = None
        if whole is None:
            with pytest.raises(WireError):
                read(data, variant)


@given(st.integers(1, 300))
def test_a_request_that_is_cut_off_is_refused(cut: int) -> None:
    """Wherever it ends before its end, unless that is between two fields."""
    message = discovery_pb2.DiscoveryRequest(resource_names=["x" * 20] * 20, type_url="t")
    data = message.SerializeToString()[: -(cut % 22) or None]
    if cut % 22 not in (0, 3):
        with pytest.raises(WireError):
            read(data, Variant.SOTW)


@pytest.mark.parametrize("variant", list(Variant))
def test_names_are_counted_before_they_are_made(variant: Variant) -> None:
    """Two bytes each: of a million the first few pieces are read."""
    data = b"\x1a\x00" * LARGE
    limits = Limits(names_per_certificate=10)
    found = []

    with pytest.raises(Excess) as over:
        for piece in pieces(data, variant, limits):
            found.append(piece)  # noqa: PERF402 - those until it is too much
    assert (over.value.bound, over.value.limit) == (LimitKind.NAMES, 10)
    assert over.value.value <= 12
    assert sum(map(len, found)) <= 20
    assert len(list(itertools.islice(pieces(data, variant, limits.without_budgets()), 1000))) == 1000


@pytest.mark.parametrize("variant", list(Variant))
@pytest.mark.parametrize("what", ["node", "type_url"])
def test_a_field_that_is_too_long_is_refused_before_it_is_read(variant: Variant, what: str) -> None:
    """A node may hold more objects than bytes; a type_url is an address of kilobytes at most."""
    kind = {
        Variant.SOTW: discovery_pb2.DiscoveryRequest,
        Variant.DELTA: discovery_pb2.DeltaDiscoveryRequest,
    }[variant]
    long = "x" * LARGE
    message = kind(node={"id": long}) if what == "node" else kind(type_url=long)

    with pytest.raises(Excess) as over:
        list(pieces(message.SerializeToString(), variant, Limits()))
    assert over.value.bound is (LimitKind.NODE if what == "node" else LimitKind.FIELD)
    assert over.value.limit == Limits().node_bytes


@pytest.mark.parametrize("variant", list(Variant))
def test_n2_a_long_error_is_cut_and_the_rest_is_read(variant: Variant) -> None:
    """Envoy may put the whole response into its words: their beginning and the code are kept."""
    kind = {
        Variant.SOTW: discovery_pb2.DiscoveryRequest,
        Variant.DELTA: discovery_pb2.DeltaDiscoveryRequest,
    }[variant]
    message = kind(type_url="t", response_nonce="7")
    message.error_detail.code = 13
    message.error_detail.message = "é" * LARGE
    message.error_detail.details.add(type_url="d")

    request = read(message.SerializeToString(), variant)
    assert request.rejection == Rejection(13, "é" * ERROR_LIMIT)
    assert (request.type_url, request.nonce) == ("t", "7")


def test_of_what_stands_in_several_pieces_the_last_counts() -> None:
    """As in Protocol Buffers."""
    parts = [
        discovery_pb2.DeltaDiscoveryRequest(type_url=word, response_nonce=word).SerializeToString()
        for word in ("one", "two", "six")
    ]
    request = read(b"".join([*parts, b"\x1a\x01a"]), Variant.DELTA)

    assert request == DeltaRequest(type_url="six", subscribe=("a",), nonce="six")  # type: ignore[arg-type]
