"""Fault injection: the filter is inactive by itself, and routes configure the faults."""

from dataclasses import dataclass
from typing import Final

from catalog.policy.values.route_table import RequestTreatment
from catalog.policy.values.terms import MeshTerms
from meshwright.sidecars.envoy.clusters.outlier_detection import duration
from meshwright.sidecars.envoy.common_messages import packed, percent
from meshwright.sidecars.envoy.features.feature import Feature
from protos.envoy.config.route.v3 import route_components_pb2
from protos.envoy.extensions.filters.common.fault.v3 import fault_pb2 as common_pb2
from protos.envoy.extensions.filters.http.fault.v3 import fault_pb2
from protos.envoy.extensions.filters.network.http_connection_manager.v3 import (
    http_connection_manager_pb2 as hcm_pb2,
)

FILTER: Final = "envoy.filters.http.fault"


@dataclass(frozen=True, slots=True)
class Faults(Feature):
    """The fault filter, present if any rule injects faults."""

    def to_manager(self, manager: hcm_pb2.HttpConnectionManager, terms: MeshTerms) -> None:
        """Add the fault filter, which is inactive without the settings of routes."""
        del terms
        manager.http_filters.add(name=FILTER, typed_config=packed(fault_pb2.HTTPFault()))


def harm(route: route_components_pb2.Route, treatment: RequestTreatment) -> None:
    """Configure the fault filter for a route: delay or abort a percentage of the requests."""
    message = fault_pb2.HTTPFault()
    if (delay := treatment.delay) is not None:
        message.delay.CopyFrom(
            common_pb2.FaultDelay(fixed_delay=duration(delay.duration), percentage=percent(delay.percent))
        )
    if (abort := treatment.abort) is not None:
        message.abort.CopyFrom(
            fault_pb2.FaultAbort(http_status=abort.status, percentage=percent(abort.percent))
        )
    route.typed_per_filter_config[FILTER].CopyFrom(packed(message))
