"""istiod as a peer on a real Kubernetes API, with the benchmarks' mesh as objects."""
