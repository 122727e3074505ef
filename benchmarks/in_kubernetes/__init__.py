"""The benchmarks' mesh as objects of a Kubernetes API: what every control plane reads, and what ours does."""
