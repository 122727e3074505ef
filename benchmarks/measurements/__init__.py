"""What is measured of a mesh: one served from nothing, its changes, endpoints that move, and the floor.

It never decides whether a figure is reached.
"""
