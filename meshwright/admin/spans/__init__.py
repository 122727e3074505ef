"""Traces of changes in the form of OpenTelemetry, from the event of a source to the last ACK.

`change` converts the record of a finished wave to spans, `otlp` encodes spans for the wire, and `export`
sends them to a collector. Only `export` waits or reads a clock. The export never delays a wave: a full queue
drops the trace, and `meshwright_spans_dropped` counts its spans.
"""
