"""Pages about the whole mesh: topology, traffic, sources, certificates (never a key), published resources."""
