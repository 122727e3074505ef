"""Envoy's life beside a workload: start, replacement without interruption, stop, and giving up.

`lifecycle` has the pure decisions and `supervisor` the processes; `admin` queries Envoy's admin interface.

The package never changes Envoy's configuration: the control plane sends it.
"""
