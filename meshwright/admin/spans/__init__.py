"""Spans: how each change travelled from its event to the last ACK, in OpenTelemetry's terms.

Only `export`, which sends spans to a collector, waits or reads a clock.
It never keeps a wave from being served.
"""
