"""Access logs, and the names of Envoy's statistics.

It never reads statistics: agents do.
"""
