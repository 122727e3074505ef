"""The injection webhook: its registration, reviews and answers.

This package never decides: `meshwright.kubernetes.injection.decision` does.
"""
