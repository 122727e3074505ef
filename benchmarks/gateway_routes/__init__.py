"""Benchmark of HTTPRoutes: `python -m benchmarks.gateway_routes`.

`mesh` has the objects, `sidecars` what runs beside the measured server, and `__main__` the measurements. The
package never starts a load generator: one caller with a real Envoy is enough.
"""
