"""Metrics of the control plane, as Prometheus collectors.

A metric never influences a decision.
"""

from prometheus_client import disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each counter, which nobody asks for
