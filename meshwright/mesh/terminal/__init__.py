"""Text of others, made safe for a terminal.

It never decides what is shown.
"""
