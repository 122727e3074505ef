"""The loop from changes to snapshots: gather, follow, publish what was touched, wave by wave.

It holds what is current. It will never speak to a proxy, nor remember what one was sent.
"""
