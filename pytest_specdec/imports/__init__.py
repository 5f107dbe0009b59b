"""Imports: what other tools measured of speculation, one file a format. Floor 1."""
