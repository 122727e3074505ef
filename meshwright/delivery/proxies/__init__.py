"""The proxies that are here, should be, or were: who each is, what it did, and what follows for the mesh."""
