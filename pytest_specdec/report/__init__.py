"""Reports: values in, text out; no pytest, no terminal. Floor 4."""
