"""The benchmarks' mesh as objects of a Kubernetes API: common objects, and the policies of our server."""
