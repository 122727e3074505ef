"""Quarantine of rejected configuration: the object at fault is excluded, reported, and retried later.

It works on finished snapshots, and on the pieces that their resources name. It never makes a snapshot from
the mesh.
"""
