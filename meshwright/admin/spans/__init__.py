"""Traces in OpenTelemetry's terms: the way of a change from its event to the last ACK.

Only `export`, which sends spans to a collector, waits or reads a clock. It never delays a wave.
"""
