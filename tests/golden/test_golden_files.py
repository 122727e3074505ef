"""Tests of translated resources against golden files, and of their validity by a second codec."""

import functools
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from meshwright.sidecars.envoy.validation import faults
from protos.envoy.config.listener.v3 import listener_components_pb2
from protos.envoy.extensions.filters.network.tcp_proxy.v3 import tcp_proxy_pb2
from tests.golden.cases import CASES, EVERY, HERE, case_groups, decoded, masked_secrets, render
from xds.protocol.resources.resource import SECRET
from xds.protocol.resources.snapshot import Snapshot


@pytest.mark.parametrize("case", EVERY)
def test_resources_of_each_case_equal_the_golden_files(case: str, pytestconfig: pytest.Config) -> None:
    """No other files are in the case's folder."""
    folder = HERE / case
    made = render(case)
    if pytestconfig.getoption("--update-golden", default=False):
        folder.mkdir(exist_ok=True)
        for stale in {path.name for path in folder.iterdir()} - {*made, "mesh.yaml"}:
            (folder / stale).unlink()
        for name, text in made.items():
            (folder / name).write_text(text)
    result = {path.name: path.read_text() for path in folder.iterdir() if path.name != "mesh.yaml"}
    assert result == made


@pytest.mark.parametrize("case", EVERY)
def test_every_referenced_resource_exists_and_none_is_unused(case: str) -> None:
    """References of a resource are in the snapshot of its group."""
    for group in case_groups(case):
        snapshot = Snapshot.of((*group.resources, *masked_secrets(group.policy)))
        assert snapshot.missing() == ()
        named = {reference for resource in group.resources for reference in resource.references}
        roots = {"cluster.v3.Cluster", "listener.v3.Listener"}
        unused = [
            item.name
            for item in group.resources
            if (item.type_url, item.name) not in named
            and not any(item.type_url.endswith(root) for root in roots)
        ]
        assert unused == []


@pytest.mark.parametrize("case", EVERY)
def test_second_codec_decodes_resources_to_the_same_values(case: str) -> None:
    """envoy-data-plane shares no code with protobuf."""
    for group in case_groups(case):
        for resource in (*group.resources, *masked_secrets(group.policy)):
            assert _other_codec(resource.body) == decoded(resource), resource.name


@pytest.mark.parametrize("case", EVERY)
def test_filter_chains_of_a_listener_have_distinct_matches(case: str) -> None:
    """No address and port is in two matches of a listener, because Envoy rejects such listeners."""
    for group in case_groups(case):
        for resource in group.resources:
            seen: set[tuple[object, ...]] = set()
            for chain in decoded(resource).get("filterChains", []):
                match = chain.get("filterChainMatch", {})
                prefixes = [
                    prefix_range["addressPrefix"] for prefix_range in match.get("prefixRanges", [])
                ] or [""]
                for prefix in prefixes:
                    asked = tuple(match.get("serverNames", ()))
                    key = (match.get("destinationPort"), prefix, match.get("transportProtocol"), asked)
                    assert key not in seen, (resource.name, key)
                    seen.add(key)


def test_golden_files_of_secrets_contain_no_key() -> None:
    """They have names and placeholders, and no PEM."""
    written = [path.read_text() for path in HERE.glob("*/*.secrets.yaml")]
    assert written
    assert not any("BEGIN" in text for text in written)


def test_secret_resource_does_not_show_its_body_when_printed() -> None:
    """The `repr` of a secret has no key."""
    secret = masked_secrets(case_groups(CASES[0])[0].policy)[0]
    assert secret.type_url == SECRET
    assert "private key" not in repr(secret)


@functools.cache  # half of the bodies are in several groups, and this codec is slow
def _other_codec(body: bytes) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from envoy_data_plane.envoy.config.cluster import v3 as cluster_v3
        from envoy_data_plane.envoy.config.endpoint import v3 as endpoint_v3
        from envoy_data_plane.envoy.config.listener import v3 as listener_v3
        from envoy_data_plane.envoy.config.route import v3 as route_v3
        from envoy_data_plane.envoy.config.trace import v3 as _trace_v3
        from envoy_data_plane.envoy.extensions.access_loggers.file import v3 as _file_v3
        from envoy_data_plane.envoy.extensions.access_loggers.open_telemetry import v3 as _otlp_v3
        from envoy_data_plane.envoy.extensions.access_loggers.stream import v3 as _stream_v3
        from envoy_data_plane.envoy.extensions.filters.http.cors import v3 as _cors_v3
        from envoy_data_plane.envoy.extensions.filters.http.ext_authz import v3 as _ext_authz_v3
        from envoy_data_plane.envoy.extensions.filters.http.fault import v3 as _fault_v3
        from envoy_data_plane.envoy.extensions.filters.http.grpc_stats import v3 as _grpc_stats_v3
        from envoy_data_plane.envoy.extensions.filters.http.local_ratelimit import v3 as _http_rate_v3
        from envoy_data_plane.envoy.extensions.filters.http.ratelimit import v3 as _http_asked_v3
        from envoy_data_plane.envoy.extensions.filters.http.rbac import v3 as _http_rbac_v3
        from envoy_data_plane.envoy.extensions.filters.http.router import v3 as _router_v3
        from envoy_data_plane.envoy.extensions.filters.listener.http_inspector import v3 as _http_inspector_v3
        from envoy_data_plane.envoy.extensions.filters.listener.original_dst import v3 as _original_v3
        from envoy_data_plane.envoy.extensions.filters.listener.tls_inspector import v3 as _inspector_v3
        from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager import v3 as _hcm_v3
        from envoy_data_plane.envoy.extensions.filters.network.local_ratelimit import v3 as _rate_v3
        from envoy_data_plane.envoy.extensions.filters.network.ratelimit import v3 as _asked_v3
        from envoy_data_plane.envoy.extensions.filters.network.rbac import v3 as _rbac_v3
        from envoy_data_plane.envoy.extensions.filters.network.tcp_proxy import v3 as _tcp_v3
        from envoy_data_plane.envoy.extensions.request_id.uuid import v3 as _uuid_v3
        from envoy_data_plane.envoy.extensions.retry.host.previous_hosts import v3 as _previous_v3
        from envoy_data_plane.envoy.extensions.retry.priority.previous_priorities import v3 as _priorities_v3
        from envoy_data_plane.envoy.extensions.tracers.opentelemetry.resource_detectors import v3 as _who_v3
        from envoy_data_plane.envoy.extensions.transport_sockets.tls import v3 as tls_v3
        from envoy_data_plane.envoy.extensions.upstreams.http import v3 as _http_v3

        # Imported for their messages, which are inside others as Any.
        assert all((_stream_v3, _http_rbac_v3, _router_v3, _original_v3, _inspector_v3, _hcm_v3))
        assert all((_rbac_v3, _tcp_v3, _http_v3, _trace_v3, _ext_authz_v3, _uuid_v3, _http_rate_v3, _rate_v3))
        assert all((_asked_v3, _http_asked_v3, _file_v3, _otlp_v3, _grpc_stats_v3))
        assert all((_http_inspector_v3, _cors_v3))
        assert all((_previous_v3, _priorities_v3, _fault_v3, _who_v3))
        kinds: dict[str, Any] = {
            "Listener": listener_v3.Listener,
            "RouteConfiguration": route_v3.RouteConfiguration,
            "Cluster": cluster_v3.Cluster,
            "ClusterLoadAssignment": endpoint_v3.ClusterLoadAssignment,
            "Secret": tls_v3.Secret,
        }
        wrapped = any_pb2.Any.FromString(body)
        result: dict[str, Any] = kinds[wrapped.type_url.rpartition(".")[2]].parse(wrapped.value).to_dict()
        # It capitalizes a letter after a digit, and protobuf does not.
        ejecting = result.get("outlierDetection", {})
        for name in ("enforcingConsecutive5Xx", "consecutive5Xx"):
            if name in ejecting:
                ejecting[name.replace("X", "x")] = ejecting.pop(name)
        return result


@pytest.mark.parametrize("case", EVERY)
def test_resources_use_no_deprecated_field(case: str) -> None:
    """The check covers all depths, also messages inside an Any."""
    for group in case_groups(case):
        for resource in (*group.resources, *masked_secrets(group.policy)):
            wrapped = any_pb2.Any.FromString(resource.body)
            assert list(_deprecated(_unpacked(wrapped), resource.name)) == []


@pytest.mark.parametrize("case", EVERY)
def test_resources_are_valid_by_envoys_own_rules(case: str) -> None:
    """The validation rules of Envoy's API and those in Envoy's code hold."""
    for group in case_groups(case):
        for resource in (*group.resources, *masked_secrets(group.policy)):
            assert faults(any_pb2.Any.FromString(resource.body)) == ()


def test_deprecated_field_inside_any_is_found() -> None:
    """This is the negative control of the check above."""
    old = tcp_proxy_pb2.TcpProxy(stat_prefix="old", access_log_flush_interval=Duration(seconds=1))
    packed = any_pb2.Any()
    packed.Pack(old)
    result = listener_components_pb2.Filter(name="f", typed_config=packed)
    assert list(_deprecated(result, "x")) == ["x.typed_config.access_log_flush_interval"]


def _deprecated(message: Message, path: str) -> Iterator[str]:
    if isinstance(message, any_pb2.Any):
        yield from _deprecated(_unpacked(message), path)
        return
    for descriptor, value in message.ListFields():
        here = f"{path}.{descriptor.name}"
        if descriptor.GetOptions().deprecated:
            yield here
        for item in value.values() if callable(getattr(value, "values", None)) else _each(value):
            if isinstance(item, Message):
                yield from _deprecated(item, here)


def _each(value: object) -> Iterable[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else (value,)


def _unpacked(wrapped: any_pb2.Any) -> Message:
    descriptor = descriptor_pool.Default().FindMessageTypeByName(wrapped.TypeName())
    message: Message = message_factory.GetMessageClass(descriptor)()
    message.ParseFromString(wrapped.value)
    return message
