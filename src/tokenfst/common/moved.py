"""Old names of modules that documented examples imported before the modules moved. They work for one version.

An old name imports the module of the new name, which is the same object, and warns. The finder comes after all
others, so it is asked only for modules that do not exist.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "arguments": "common.arguments",
    "automata.drawing": "automata.languages.display.drawing",
    "automata.expression": "automata.expressions.expression",
    "automata.fst": "automata.openfst.fst",
    "automata.fst_files": "automata.openfst.files",
    "automata.grammar": "automata.grammars.grammar",
    "automata.languages.drawing": "automata.languages.display.drawing",
    "automata.lark_syntax": "automata.notations.lark_syntax",
    "clock_cache": "common.clock_cache",
    "decoding.abs": "decoding.search.beam_search",
    "decoding.artifact": "decoding.artifacts.artifact",
    "decoding.artifact_format": "decoding.artifacts.artifact_format",
    "decoding.bitmask": "decoding.masks.bitmask",
    "decoding.device_automaton": "decoding.device.automata.automaton",
    "decoding.hmm": "decoding.particles.hmm",
    "decoding.hmm_product": "decoding.particles.hmm_product",
    "decoding.hmm_training": "decoding.particles.hmm_training",
    "decoding.language_model": "decoding.models.language_model",
    "decoding.smc": "decoding.particles.smc",
    "decoding.token_automata.artifact": "decoding.artifacts.artifact",
    "decoding.token_automata.artifact_format": "decoding.artifacts.artifact_format",
    "json_objects": "common.json_objects",
    "locks": "common.locks",
    "notebook": "common.notebook",
    "plurals": "common.plurals",
    "printable": "common.printable",
    "renamed": "common.renamed",
    "token_ids": "common.token_ids",
    "tokenizers.byte_pair_tokenizer": "tokenizers.segmentation.tokenizer",
}


class MovedModules:
    """A finder and loader of modules by their old names."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module that has moved, else None."""
        package, _, old = name.partition(".")
        return ModuleSpec(name, MovedModules()) if package == "tokenfst" and old in MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module that the old name stands for now."""
        new = f"tokenfst.{MOVED[spec.name.partition('.')[2]]}"
        warnings.warn(f"{spec.name} has moved to {new}", DeprecationWarning, stacklevel=2)
        self._kept = importlib.import_module(new)
        self._names = {"__spec__": self._kept.__spec__, "__loader__": self._kept.__loader__}
        return self._kept

    def exec_module(self, module: ModuleType) -> None:
        """Restore the attributes that the import system has overwritten; the module itself has run already."""
        for name, value in self._names.items():
            setattr(module, name, value)


if not any(isinstance(finder, type) and finder.__name__ == "MovedModules" for finder in sys.meta_path):
    sys.meta_path.append(MovedModules)
