"""Sources from installed packages, found by entry point and called in threads of their own.

A failure of one source never affects the others.
"""
