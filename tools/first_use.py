"""The first use of an installed package, without a model: compile, walk, save, load.

Run for each wheel after it was built (``[tool.cibuildwheel]``).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import tokenfst


def main() -> None:
    """Raise unless all of it works."""
    vocabulary = tokenfst.Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b""], 257)
    automaton = tokenfst.compile(tokenfst.regex("(ab)+"), vocabulary)
    matcher = automaton.matcher(max_new_tokens=4)
    bitmask = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(bitmask, 0)
    if not (matcher.accept_token(256) and not matcher.accept_token(98) and matcher.is_accepting()):
        raise SystemExit("the matcher does not say what the pattern means")
    schema = tokenfst.json_schema(
        {"type": "object", "properties": {"born": {"type": "string", "format": "date"}}}
    )
    if not schema.accepts('{"born": "1816-02-29"}') or schema.accepts('{"born": "1815-02-29"}'):
        raise SystemExit("the schema does not say what its format means")
    if not tokenfst.compile(tokenfst.bundled_grammar("json"), vocabulary).is_pushdown:
        raise SystemExit("the grammar has no stack")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "it.safetensors"
        automaton.save(path)
        if not tokenfst.load(path, vocabulary).is_expanded:
            raise SystemExit("the artifact is not what was saved")
    print(f"tokenfst {tokenfst.__version__} works")


if __name__ == "__main__":
    main()
