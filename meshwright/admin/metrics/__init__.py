"""What is counted and measured, in Prometheus' terms."""

from prometheus_client import disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call] # a series more for each counter, which nobody asks for
