"""Certificates and join tokens of proxies, the enrolment ports, and the server's own certificate.

The package never decides about the right to join: `meshwright.enrolment` does.
"""
