"""Statistics of a proxy: calls by edge of the mesh, with success rates and latencies.

`statistics` parses Envoy's counters, and `edge_totals` sums them per edge and limits the number of series.
`edges` makes Prometheus metrics of them, and `page` makes the page for Prometheus. `increments` and `report`
make the reports to the control plane, which `reporting` sends.

The package never counts a request: Envoy does.
"""
