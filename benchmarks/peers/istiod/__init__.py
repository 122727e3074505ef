"""The mesh peer: istiod on a real Kubernetes API, with the benchmarks' mesh as objects there."""
