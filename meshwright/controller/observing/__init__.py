"""Gauges, spans, taps and the readings that the admin pages show of a running server.

It never changes what it reads.
"""
