"""Files of the state directory: private to their owner, replaced atomically, and encrypted on request.

It never decides what is in a certificate.
"""
