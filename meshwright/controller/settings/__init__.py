"""Settings of the server: values, rules, reference page, schema, and reload.

It never starts anything: the modules convert text to values and values to text.
"""
