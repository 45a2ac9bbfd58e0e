"""What the pages of transducers' operations have from the code: ``python docs/operations.py``.

Each operation of ``tokenfst.fst`` has a page ``docs/fst/NAME.md``. Its first part, between two comments, is written
here: the signatures and the text of the docstring. The rest is by hand: usage, complexity, caveats. The table of
docs/fst/index.md is written here too. tests/programs/test_operation_pages.py checks that all of it is there and up to
date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tokenfst.fst as fst

FOLDER = Path(__file__).resolve().parent
BEGIN, END = "<!-- from the docstring, by docs/operations.py -->", "<!-- by hand from here -->"
TABLE, TABLE_END = "<!-- the pages, by docs/operations.py -->", "<!-- end of the pages -->"
TOGETHER = {
    "decode": "encode",
    "relabel_pairs": "relabel",
    "relabel_tables": "relabel",
    "read": "files",
    "write": "files",
    "from_bytes": "files",
    "to_bytes": "files",
    "read_from_string": "files",
    "write_to_string": "files",
    "from_pynini": "files",
    "to_pynini": "files",
    "table_of": "files",
    "arrays": "arrays",
    "from_arrays": "arrays",
    "Far": "archives",
    "merge_symbol_table": "symbols",
    "compact_symbol_table": "symbols",
    "print": "text",
}
"""Names that share a page."""
NO_OPERATIONS = {"plus", "times", "divide", "power", "add_states", "reserve_states"}
"""Functions of weights, and methods with a budget that build a machine by hand."""
METHODS = {"draw", "print", "properties", "verify"}
"""Methods without a budget that are operations still."""
_FIRST = {"fst.read", "fst.write", "fst.encode"}
"""What comes first on its page."""
CLASSES: dict[str, list[type]] = {
    "encode": [fst.EncodeMapper],
    "archives": [fst.FarReader, fst.FarWriter],
    "symbols": [fst.SymbolTable],
    "text": [fst.Compiler],
}


def operations() -> dict[str, list[tuple[str, Callable[..., Any]]]]:
    """The pages, each with what it shows: how it is called, and the function."""
    found: dict[str, list[tuple[str, Callable[..., Any]]]] = {}

    def add(name: str, call: str, function: Callable[..., Any]) -> None:
        found.setdefault(TOGETHER.get(name, name), []).append((call, function))

    for name in fst.__all__:
        value = getattr(fst, name)
        if inspect.isfunction(value) and name not in NO_OPERATIONS:
            add(name, f"fst.{name}", value)
    for name, value in vars(fst.VectorFst).items():
        function = getattr(fst.VectorFst, name)
        if name.startswith("_") or not callable(function) or name in NO_OPERATIONS:
            continue
        if "budget" in inspect.signature(function).parameters or name in METHODS or name in TOGETHER:
            place = "fst.VectorFst" if isinstance(value, classmethod) else "machine"
            add(name, f"{place}.{name}", function)
    for name, function in vars(fst.lazy).items():
        if inspect.isfunction(function) and function.__module__ == fst.lazy.__name__ and name[0] != "_":
            add(name, f"fst.lazy.{name}", function)
    for shown in found.values():
        shown.sort(key=lambda each: each[0] not in _FIRST)
    return dict(sorted(found.items()))


def signature(call: str, function: Callable[..., Any]) -> str:
    """How it is called: names and defaults; the docstring says the rest."""
    parts, keywords = [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if name == "self":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            name, keywords = f"*{name}", True
        elif parameter.kind is parameter.KEYWORD_ONLY and not keywords:
            parts.append("*")
            keywords = True
        given = parameter.default
        parts.append(name if given is parameter.empty else f"{name}={given!r}")
    text = f"{call}({', '.join(parts)})"
    if len(text) <= 110:
        return text
    lines, line = [f"{call}("], "   "
    for part in parts:
        if len(line) + len(part) > 108:
            lines.append(line)
            line = "   "
        line += f" {part},"
    return "\n".join([*lines, line.rstrip(","), ")"])


def described(function: Any) -> str:
    """A docstring as Markdown."""
    return (inspect.getdoc(function) or "").replace("``", "`")


def head(name: str) -> str:
    """The part of a page that is written here."""
    shown = operations()[name]
    lines = [BEGIN, "```py", *(signature(*each) for each in shown), "```", "", "## Description", ""]
    several = len(shown) + len(CLASSES.get(name, ())) > 1
    for call, function in shown:
        lines += [f"`{call}`: {described(function)}" if several else described(function), ""]
    for each in CLASSES.get(name, ()):
        lines += [f"`fst.{each.__name__}`: {described(each)}", ""]
    return "\n".join([*lines, END])


def table() -> str:
    """The table of docs/fst/index.md."""
    lines = [TABLE, "| page | | lazy |", "|---|---|---|"]
    for name, shown in operations().items():
        shows = CLASSES[name][0] if name == "archives" else shown[0][1]
        first = re.split(r"(?<=\.)\s|\n\n", described(shows))[0].replace("\n", " ").replace("|", "\\|")
        lazy = "yes" if any(call.startswith("fst.lazy.") for call, _ in shown) else ""
        lines.append(f"| [{name}]({name}.md) | {first.rstrip('.')} | {lazy} |")
    return "\n".join([*lines, TABLE_END])


def replaced(text: str, begin: str, end: str, new: str) -> str:
    """``text`` with what stands between two comments made new."""
    before, rest = text.split(begin, 1)
    return before + new + rest.split(end, 1)[1]


def written() -> dict[Path, str]:
    """Each page as it should be."""
    pages = {}
    for name in operations():
        path = FOLDER / "fst" / f"{name}.md"
        pages[path] = replaced(path.read_text(), BEGIN, END, head(name))
    main = FOLDER / "fst" / "index.md"
    pages[main] = replaced(main.read_text(), TABLE, TABLE_END, table())
    return pages


def main() -> None:
    """Write them."""
    for path, text in written().items():
        if path.read_text() != text:
            path.write_text(text)
            print(f"wrote {path.relative_to(FOLDER.parent)}", file=sys.stderr)


if __name__ == "__main__":
    main()
