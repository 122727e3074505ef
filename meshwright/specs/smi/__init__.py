"""Readers of SMI's kinds, in every published version that users have.

They never decide what a policy means.
"""
