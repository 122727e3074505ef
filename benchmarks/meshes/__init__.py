"""Generated meshes of any size: as values, as manifests, and with the changes a user makes.

The package never starts a program.
"""
