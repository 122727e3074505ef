"""Open Service Mesh's own kinds."""
