"""The bookstore in a cluster: real Pods, Open Service Mesh's manifests, and what operators do to them.

Drives Meshwright from outside: by its manifests, `kubectl` and what applications inside the Pods see.
"""
