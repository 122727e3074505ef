"""Pages about the whole mesh: topology, traffic, sources, certificates and published resources."""
