"""When a wave begins, and how long the loop may compute before others get a turn.

It never computes anything of the mesh.
"""
