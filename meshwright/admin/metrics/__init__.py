"""Metrics of the control plane, as Prometheus collectors.

Each module has one class with the metrics of one subject. `registry.Metrics` combines all classes with one
registry; the rest of the server calls its methods, and sees only the small protocols that it needs. Counters
with several updates per push are plain numbers (`tallies`). A metric never influences a decision, and every
label has a closed set of values, so that the number of series does not grow with the mesh.
docs/operate/metrics.md lists all names.
"""

from prometheus_client import disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call] # saves one series for each counter
