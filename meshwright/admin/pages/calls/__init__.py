"""Pages about one call: why it is allowed or denied, and the proxies on its way.

It never makes the call.
"""
