"""Header in a sidecar's own answers to a diagnosis, with the side and the cause.

An answer such as 404 (missing route) or 403 (upgrade failed) looks like the application's own. Envoy's access
log has response flags and details, but `meshwright connectivity` has only the answer. The command's request
therefore has the header `DIAGNOSIS_HEADER`, and an answer of a sidecar itself to such a request has side,
flags and details, for example `caller NR route_not_found`.

Requests without the header get ordinary answers. Callers from outside of the mesh do too: connection managers
for plaintext, and for ports with admission by certificate name (such as a gateway, which may forward the
headers of clients), lack the mapper. Details of failed connections may contain TLS messages, which Envoy has
removed from answers; the header then has only the flag.
"""

from dataclasses import dataclass
from functools import cache
from typing import Final

from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.features.feature import Feature
from meshwright.sidecars.layout import DIAGNOSIS_HEADER, OWN_ANSWER_HEADER, Side
from protos.envoy.config.accesslog.v3 import accesslog_pb2
from protos.envoy.config.core.v3 import base_pb2
from protos.envoy.config.route.v3 import route_components_pb2, route_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

_OF_CONNECTIONS: Final = ("UF", "UC", "UR", "LR", "UPE", "UO")
"""Response flags of requests whose connection failed, could not be made, or was reset."""

_Filter = accesslog_pb2.AccessLogFilter


@dataclass(frozen=True, slots=True)
class Diagnosis(Feature):
    """The header with side and cause in a sidecar's own answers to `meshwright connectivity`."""

    side: Side

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the header with side and cause to the sidecar's own answers."""
        del terms
        manager.local_reply_config.mappers.extend(mappers(self.side))

    def to_routes(self, routes: route_pb2.RouteConfiguration) -> None:
        """Remove the header from the application's answers; Envoy adds the sidecar's own afterwards."""
        if self.side is Side.CALLED:
            routes.response_headers_to_remove.append(OWN_ANSWER_HEADER)


@cache
def mappers(side: Side) -> tuple[hcm_pb2.ResponseMapper, ...]:
    """Return the response mappers of a side, about 120 bytes each, to be copied into messages."""
    flags = accesslog_pb2.ResponseFlagFilter(flags=_OF_CONNECTIONS)
    failed = accesslog_pb2.AndFilter(filters=[_diagnosis_filter(), _Filter(response_flag_filter=flags)])
    return (
        _saying(_Filter(and_filter=failed), f"{side} %RESPONSE_FLAGS%"),
        _saying(_diagnosis_filter(), f"{side} %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%"),
    )


def _diagnosis_filter() -> _Filter:
    header = route_components_pb2.HeaderMatcher(name=DIAGNOSIS_HEADER, present_match=True)
    return _Filter(header_filter=accesslog_pb2.HeaderFilter(header=header))


def _saying(fits: _Filter, value: str) -> hcm_pb2.ResponseMapper:
    header = base_pb2.HeaderValueOption(
        header=base_pb2.HeaderValue(key=OWN_ANSWER_HEADER, value=value),
        append_action=base_pb2.HeaderValueOption.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )
    return hcm_pb2.ResponseMapper(filter=fits, headers_to_add=[header])
