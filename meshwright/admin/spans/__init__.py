"""Spans: how each change travelled from its event to the last ACK, in OpenTelemetry's terms.

Nothing here waits, or reads a clock: who sends spans to a collector is
`meshwright.controller.observing.span_export`.
"""
