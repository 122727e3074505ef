"""Meshwright: a service-mesh control plane for Envoy. `docs/understand/architecture.md` lists the packages.

This module never imports anything, because each program of Meshwright imports it first.
"""
