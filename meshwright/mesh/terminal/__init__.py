"""Foreign text made safe for a terminal.

`printable` escapes strings, `screened_stream` whole streams. The package never decides what is shown.
"""
