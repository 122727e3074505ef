"""Access logs, and the names of Envoy's statistics.

The package never reads statistics: agents do.
"""
