"""Gauges, spans, taps, and the data of a running server for the admin pages.

The package never changes the server or the mesh.
"""
