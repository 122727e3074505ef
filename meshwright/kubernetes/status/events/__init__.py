"""Writing Events about objects.

It never writes a status.
"""
