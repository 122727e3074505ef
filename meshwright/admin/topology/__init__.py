"""Who calls whom: what policy allows, what proxies have counted, and where that stands in a picture.

Pure functions of a view and of figures. It will never read anything by itself, or know HTML.
"""
