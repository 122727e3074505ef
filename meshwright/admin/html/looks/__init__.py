"""The layout of each debug page, and the sentence that introduces it.

It never reads anything but the page's JSON.
"""
