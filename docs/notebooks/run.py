"""Run the notebooks and write their outputs: ``python docs/notebooks/run.py [NAME]...``.

A light runner, for code cells alone: all cells of a notebook share a namespace; what is printed, and the value of the
last expression as text, HTML and SVG, become the cell's outputs, as Jupyter writes them. The same code gives the same
file: no times, no counts of runs. tests/programs/test_notebooks.py runs the notebooks again and compares what is text.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def main() -> None:
    """Run those that are named, or all."""
    for path in [FOLDER / f"{name}.ipynb" for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text())
        with contextlib.chdir(FOLDER):
            run(notebook)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
        print(f"ran {path.name}")


def run(notebook: dict[str, Any]) -> None:
    """Run all code cells and put their outputs into them."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(cells, 1):
        cell["execution_count"] = number
        cell["outputs"] = outputs("".join(cell["source"]), namespace, number)


def outputs(code: str, namespace: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """What one cell shows."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), namespace)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        for kind, method in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
            shown = getattr(value, method, lambda: None)()
            if shown is not None:
                data[kind] = _lines(shown)
        found.append(
            {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}
        )
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    main()
