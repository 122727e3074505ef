"""The servers: health and metrics on a thread of their own, debug pages, the Unix socket of the directory."""
