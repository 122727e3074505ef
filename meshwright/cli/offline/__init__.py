"""A directory of manifests as the server would read it, without a server."""
