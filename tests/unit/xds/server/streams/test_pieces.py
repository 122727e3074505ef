"""Tests of reading a long request in pieces, with bounds that are checked before objects are created."""

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
    """Cut a request after every three fields."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FIELDS", 3)
        yield


def read(data: bytes, variant: Variant, limits: Limits | None = None) -> AnyRequest:
    """Read a request piece by piece."""
    return joined([READ[variant](piece) for piece in pieces(data, variant, limits or Limits())])


@given(NAMES, WORDS, WORDS, WORDS, WORDS, st.booleans())
def test_state_of_the_world_request_in_pieces_equals_the_whole(
    names: list[str], version: str, type_url: str, nonce: str, node: str, rejects: bool
) -> None:
    """Every field that the server reads has the same value, in every combination of fields."""
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
def test_incremental_request_in_pieces_equals_the_whole(
    subscribe: list[str],
    unsubscribe: list[str],
    versions: dict[str, str],
    type_url: str,
    nonce: str,
    node: str,
) -> None:
    """Every field that the server reads has the same value, including the client's initial versions."""
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
def test_bytes_refused_as_a_whole_are_refused_in_pieces(data: bytes) -> None:
    """Arbitrary bytes raise WireError in pieces if they raise it as a whole, and no other error."""
    for variant in Variant:
        try:
            whole: AnyRequest | None = READ[variant](data)
        except WireError:
            whole = None
        if whole is None:
            with pytest.raises(WireError):
                read(data, variant)


@given(st.integers(1, 300))
def test_truncated_request_is_refused(cut: int) -> None:
    """A request that ends within a field raises WireError."""
    message = discovery_pb2.DiscoveryRequest(resource_names=["x" * 20] * 20, type_url="t")
    data = message.SerializeToString()[: -(cut % 22) or None]
    if cut % 22 not in (0, 3):
        with pytest.raises(WireError):
            read(data, Variant.SOTW)


@pytest.mark.parametrize("variant", list(Variant))
def test_names_are_counted_before_objects_are_created(variant: Variant) -> None:
    """An empty name takes two bytes on the wire. Of a million names only the first pieces are read."""
    data = b"\x1a\x00" * LARGE
    limits = Limits(names_per_certificate=10)
    result = []

    with pytest.raises(Excess) as over:
        for piece in pieces(data, variant, limits):
            result.append(piece)  # noqa: PERF402 - those until it is too much
    assert (over.value.bound, over.value.limit) == (LimitKind.NAMES, 10)
    assert over.value.value <= 12
    assert sum(map(len, result)) <= 20
    assert len(list(itertools.islice(pieces(data, variant, limits.without_budgets()), 1000))) == 1000


@pytest.mark.parametrize("variant", list(Variant))
@pytest.mark.parametrize("what", ["node", "type_url"])
def test_too_long_field_is_refused_before_it_is_parsed(variant: Variant, what: str) -> None:
    """A parsed node may need more objects than bytes, and a real `type_url` is short."""
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
def test_n2_long_error_is_truncated_and_other_fields_are_read(variant: Variant) -> None:
    """Envoy may put the whole response into its error message; the beginning and the code are kept."""
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


def test_last_value_of_a_repeated_singular_field_is_used() -> None:
    """Protocol Buffers prescribe this for a singular field that occurs several times."""
    parts = [
        discovery_pb2.DeltaDiscoveryRequest(type_url=word, response_nonce=word).SerializeToString()
        for word in ("one", "two", "six")
    ]
    request = read(b"".join([*parts, b"\x1a\x01a"]), Variant.DELTA)

    assert request == DeltaRequest(type_url="six", subscribe=("a",), nonce="six")  # type: ignore[arg-type]
