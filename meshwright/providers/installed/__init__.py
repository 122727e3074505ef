"""Sources from installed packages, found by entry point and called in a thread of their own.

A failure of one never stops another source.
"""
