"""Sidecar drivers: what turns a ProxyPolicy into the configuration of one kind of proxy.

The contract is in `driver`, the choice by name in `registry`; each kind of proxy has a package of its own.
A driver's `start` (its control plane) and `patch` (a pod's sidecar) are not part of the contract yet: the
controller starts Envoy's, and nothing injects. It will never decide policy: that is the catalog's.
"""
