"""The oracle: what SMI's text says of one request; the definition that the translation is tested against.

It shares no code with `catalog.policy`.
"""
