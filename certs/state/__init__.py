"""Files of the state directory: private, replaced as a whole, and encrypted if the user wants it.

It never decides what is in a certificate.
"""
