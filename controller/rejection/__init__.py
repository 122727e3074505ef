"""What proxies reject is withheld: the last good version of it stays in force for them, and is told.

It works on snapshots that are made. It will never make one from the mesh.
"""
