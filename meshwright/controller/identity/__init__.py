"""Certificates and join tokens of proxies, the enrolment ports, and the server's own certificate.

The package never decides who may join: `meshwright.enrolment` does.
"""
