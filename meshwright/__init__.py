"""Meshwright: a service-mesh control plane for Envoy. `docs/architecture.md` says what is in which package.

It imports nothing here, because each of its programs imports this first.
"""
