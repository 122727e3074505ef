"""The configuration of injection: reading it, where it is stored, and the one in force.

It never looks at a Pod.
"""
