"""The reason for a denied request, in a response header for callers of the mesh.

Enforcing rules record only the name of a matching rule. Therefore shadow rules run before them
(`meshwright.sidecars.envoy.rules.rbac.looked_for`), by which Envoy records the TrafficTarget with the caller
as a source. The response names only this TrafficTarget. Callers outside of the mesh never learn a reason,
because recording is limited to the mesh's identities.

The shadow rules are in a filter of their own, because a filter with enforced rules records a shadow result
only after the answer.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from google.protobuf.wrappers_pb2 import BoolValue

from catalog.policy.values.inbound import Access
from catalog.policy.values.terms import MeshTerms
from catalog.store.settings import DenialReasons
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.common_messages import packed
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.envoy.rules import rbac
from meshwright.sidecars.layout import DENIED_HEADER
from protos.envoy.config.accesslog.v3 import accesslog_pb2
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.route.v3 import route_pb2
from protos.envoy.extensions.filters.http.rbac.v3 import rbac_pb2 as http_rbac_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)
from protos.envoy.type.matcher.v3 import metadata_pb2, string_pb2, value_pb2

NO_TRAFFIC_TARGET: Final = "no-traffic-target"
"""Reason: the caller is not a source of any TrafficTarget for this port."""

NO_RULE_FITS: Final = "no-rule-fits"
"""Reason.

The TrafficTarget named after the reason has the caller as a source, but the request matches none of its
rules.
"""

_Filter = accesslog_pb2.AccessLogFilter


@dataclass(frozen=True, slots=True)
class Denials(Feature):
    """The recording rules and the header, if enabled. For a listener alone `access` is not used."""

    access: Access
    trust_domain: TrustDomain
    reasons: DenialReasons

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the RBAC filter that records, and the header with the reason to denying responses."""
        del terms
        if self.reasons is DenialReasons.OFF:
            return
        manager.http_filters.add(name=rbac.LOOKING_FILTER, typed_config=packed(http_rbac_pb2.RBAC()))
        if self.reasons is DenialReasons.LOG:
            return
        nothing = _noted(rbac.LOOKED_FOR, _exactly(rbac.NO_TARGET))
        some = _noted(rbac.LOOKED_FOR, value_pb2.ValueMatcher(present_match=True))
        named = f"%DYNAMIC_METADATA({rbac.HTTP_FILTER}:{rbac.LOOKED_FOR})%"
        manager.local_reply_config.mappers.extend(
            (_saying(nothing, NO_TRAFFIC_TARGET), _saying(some, f"{NO_RULE_FITS} {named}"))
        )

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Override the filter for all routes, if callers of the mesh can be denied at all."""
        result = rbac.looked_for(self.access, self.trust_domain)
        if self.reasons is not DenialReasons.OFF and result is not None:
            per_route = http_rbac_pb2.RBACPerRoute(rbac=http_rbac_pb2.RBAC(shadow_rules=result))
            routes.typed_per_filter_config[rbac.LOOKING_FILTER].CopyFrom(packed(per_route))


def _saying(access_log_filter: _Filter, value: str) -> hcm_pb2.ResponseMapper:
    # Envoy records a denial after it has answered, but an admission before. So "no verdict" means denied.
    passed_by_nobody = _noted(rbac.VERDICT, _exactly("denied"), absent=True)
    header = base_pb2.HeaderValueOption(
        header=base_pb2.HeaderValue(key=DENIED_HEADER, value=value),
        append_action=base_pb2.HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )
    return hcm_pb2.ResponseMapper(
        filter=_all((_forbidden(), passed_by_nobody, access_log_filter)), headers_to_add=[header]
    )


def _all(filters: Iterable[_Filter]) -> _Filter:
    return _Filter(and_filter=accesslog_pb2.AndFilter(filters=filters))


def _exactly(value: str) -> value_pb2.ValueMatcher:
    return value_pb2.ValueMatcher(string_match=string_pb2.StringMatcher(exact=value))


def _forbidden() -> _Filter:
    code = base_pb2.RuntimeUInt32(default_value=HTTPStatus.FORBIDDEN, runtime_key=f"{DENIED_HEADER}.status")
    comparison = accesslog_pb2.ComparisonFilter(op=accesslog_pb2.ComparisonFilter.Op.EQ, value=code)
    return _Filter(status_code_filter=accesslog_pb2.StatusCodeFilter(comparison=comparison))


def _noted(key: str, value: value_pb2.ValueMatcher, *, absent: bool = False) -> _Filter:
    """Return a filter for recorded RBAC metadata of a request; with `absent` missing metadata matches too."""
    path = [metadata_pb2.MetadataMatcher.PathSegment(key=key)]
    matcher = metadata_pb2.MetadataMatcher(filter=rbac.HTTP_FILTER, path=path, value=value)
    return _Filter(
        metadata_filter=accesslog_pb2.MetadataFilter(
            matcher=matcher, match_if_key_not_found=BoolValue(value=absent)
        )
    )
