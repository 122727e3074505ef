"""Pages about one call: why it is allowed or denied, and what it passes on its way.

It never makes the call.
"""
