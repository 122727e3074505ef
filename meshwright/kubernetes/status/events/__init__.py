"""Writers of Events about objects. This package never writes a status."""
