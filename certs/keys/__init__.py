"""Keys, certificates and signing requests as values: making and reading them.

It never writes a file.
"""
