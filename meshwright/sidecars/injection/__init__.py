"""A pod in, the pod with a sidecar out: what every driver's `patch` has in common.

Pure functions of an InjectorContext. It will never call the Kubernetes API, look at a clock, or put a key
into a pod: where it does not join, keys stand in a Secret (`names.secret_name`), made by whoever injects.
"""
