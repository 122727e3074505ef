"""What follows from the view before any policy is read: who stands behind what, where, and for whom.

It will never decide who may call whom.
"""
