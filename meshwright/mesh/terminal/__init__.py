"""Foreign text made safe for a terminal.

`printable` escapes strings, `screened_stream` whole streams. Callers decide about the content.
"""
