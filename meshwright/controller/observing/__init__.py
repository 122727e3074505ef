"""Gauges, spans, taps, and the data of a running server for the admin pages.

It never changes anything.
"""
