"""A fake engine for tests: the worker's protocol without vLLM."""
