"""Functions of later rooms that ``Vocabulary`` calls: adapters for vocabularies of other libraries and for files.

``tokenizers/adapters`` fills ``DOORS``; the package imports that module first.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # typing takes longer to import than everything here, and `import tokenfst` imports this module
)
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DOORS: dict[str, Callable[..., Any]] = {}
"""Functions by name, such as ``from_huggingface``."""
