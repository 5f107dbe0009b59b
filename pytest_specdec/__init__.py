"""A pytest gate for speculative decoding in vLLM: same output, still faster, or the build fails."""

__version__ = "0.1.0"
