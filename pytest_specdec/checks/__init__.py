"""Judging answers: pure functions from a prompt and what engines said to findings.

Floor 2: imports from the floors below and its own; no pytest, no engine, no terminal.
"""
