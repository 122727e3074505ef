"""Certificates and join tokens of proxies, the enrolment ports, and the server's own certificate.

Decisions about joining are in `meshwright.enrolment`.
"""
