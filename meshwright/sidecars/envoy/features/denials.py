"""Why a request was denied: a header of the answer, for callers of the mesh.

The rules that decide say no name where none of them fits. Before them stand others that are never in force
(`meshwright.sidecars.envoy.rules.rbac.looked_for`): by them Envoy notes which TrafficTarget has the caller as
a source. Its answer names that one and no other. Nothing is noted of a caller from outside the mesh, who is
told nothing.

They are shadow rules of a filter of their own: one that has rules in force as well notes what it has found
when it has answered already.
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
"""No TrafficTarget for this port has the caller as a source."""

NO_RULE_FITS: Final = "no-rule-fits"
"""The TrafficTarget that is named behind it has, and its rules admit other requests than this one."""

_Filter = accesslog_pb2.AccessLogFilter


@dataclass(frozen=True, slots=True)
class Denials(Feature):
    """What is looked for, and the header, if they are to be. The listener alone looks at no `access`."""

    access: Access
    trust_domain: TrustDomain
    reasons: DenialReasons

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the filter, and have answers that deny a request say what it has found."""
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
        """Override the filter for all routes; where nobody of the mesh can be denied, it stays empty."""
        found = rbac.looked_for(self.access, self.trust_domain)
        if self.reasons is not DenialReasons.OFF and found is not None:
            per_route = http_rbac_pb2.RBACPerRoute(rbac=http_rbac_pb2.RBAC(shadow_rules=found))
            routes.typed_per_filter_config[rbac.LOOKING_FILTER].CopyFrom(packed(per_route))


def _saying(found: _Filter, value: str) -> hcm_pb2.ResponseMapper:
    # Envoy answers before it has noted that it denies; that it has let a request pass, it notes before.
    passed_by_nobody = _noted(rbac.VERDICT, _exactly("denied"), absent=True)
    header = base_pb2.HeaderValueOption(
        header=base_pb2.HeaderValue(key=DENIED_HEADER, value=value),
        append_action=base_pb2.HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )
    return hcm_pb2.ResponseMapper(
        filter=_all((_forbidden(), passed_by_nobody, found)), headers_to_add=[header]
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
    """Match what the filter has noted of a request; `absent`: whether nothing noted is a match."""
    path = [metadata_pb2.MetadataMatcher.PathSegment(key=key)]
    matcher = metadata_pb2.MetadataMatcher(filter=rbac.HTTP_FILTER, path=path, value=value)
    return _Filter(
        metadata_filter=accesslog_pb2.MetadataFilter(
            matcher=matcher, match_if_key_not_found=BoolValue(value=absent)
        )
    )
