"""Readers of SMI's kinds, in all released versions.

They never decide the effect of a policy; `catalog` does.
"""
