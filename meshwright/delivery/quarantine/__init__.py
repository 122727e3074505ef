"""What proxies reject is taken out at its cause, or withheld, and offered again; and that is told.

It works on snapshots that are made, and on the pieces that their resources know. It will never make a
snapshot from the mesh.
"""
