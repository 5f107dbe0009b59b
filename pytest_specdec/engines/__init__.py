"""Engines: a target model with or without speculation, each in a process of its own.

Floor 1.
"""
