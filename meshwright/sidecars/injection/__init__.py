"""Injection: a pod in, the pod with a sidecar out. The common part of every driver's `patch`.

`context` collects the inputs from MeshConfig, the namespace and the pod. `patching.patch` then checks the pod
(`checks`), makes the parts (`sidecar`, overlays by `merging`), points probes and hooks at the agent
(`probes`, `hooks`), and records every change in annotations. `restoration` uses these annotations to recover
the author's pod. Therefore a pod can be patched again, with a newer sidecar, and the result depends only on
the author's pod.

All functions are pure: they never call the Kubernetes API, read a clock, or put a private key into a pod. A
pod that does not enrol by itself gets its key in a Secret (`names.secret_name`), which the injector creates.
"""
