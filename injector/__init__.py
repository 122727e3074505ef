"""Which pods get a sidecar, and with what: decided, configured, and done to manifests.

Functions of values: a pod and its namespace in, a decision or the patched pod out (`sidecars.injection` makes
it). It will never call the Kubernetes API, read a file, or decide what a sidecar is allowed to do.
"""
