"""Figures: results of programs as JSON, and the goals that they are judged by.

It never measures.
"""
