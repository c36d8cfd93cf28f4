"""The extensions of the sandbox, for code that is written for this name."""
from _wardian import extension_call as call, is_extension

__all__ = ['call', 'is_extension']
