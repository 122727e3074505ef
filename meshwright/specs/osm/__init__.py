"""Readers of Open Service Mesh's own kinds.

They never decide how a policy is enforced; `catalog` does.
"""
