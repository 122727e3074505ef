"""Kubernetes' own kinds, as far as a mesh needs them."""
