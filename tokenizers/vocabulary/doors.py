"""Where ``Vocabulary`` finds what rooms above this one do: vocabularies of other libraries, and files.

``DOORS`` is filled by ``tokenizers/adapters``, which the package imports first of all.
"""

from __future__ import annotations

TYPE_CHECKING = (
    False  # typing itself takes longer to import than all of this, and `import tokenfst` comes here
)
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DOORS: dict[str, Callable[..., Any]] = {}
"""Functions by name, as ``from_huggingface``."""
