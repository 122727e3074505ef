"""Settings of the server: values, rules, reference page, schema, and reload.

The package never starts a part of the server: the modules convert text to values and values to text.
"""
