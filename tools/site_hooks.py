"""What the site has beside docs/: hooks of MkDocs (mkdocs.yml).

README.md is the first page. A link of a page that leads out of docs/ is kept alive: Markdown becomes a page, other
files are shown as pages with their text, below ``source/`` and not in the search. Notebooks are pages with what they
showed. The reference has every public name.
"""

from __future__ import annotations

import ast
import json
import posixpath
import re
import shutil
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "reference"
EXPLORER = ROOT / "build" / "explorer"
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
PICTURE = re.compile(r'<picture>.*?src="([^"]*)-light\.svg" alt="([^"]*)".*?</picture>', re.DOTALL)
CELL = re.compile(r"<t[dh]\b.*?</t[dh]>", re.DOTALL)
CODE = re.compile(r"<code\b.*?</code>", re.DOTALL)
NOTEBOOKS = "docs/notebooks/"
SHOWN = (".md", ".png", ".svg")
"""What a browser shows as it is, or MkDocs makes a page of."""
LANGUAGES = {
    ".py": "python",
    ".pyi": "python",
    ".hpp": "cpp",
    ".cpp": "cpp",
    ".toml": "toml",
    ".json": "json",
    ".yml": "yaml",
}
_places: dict[str, str] = {}
"""Where in the repository each page of the site comes from."""


def on_startup(command: str, dirty: bool) -> None:
    """Lay the package out as the wheel has it, for the reference, which is read from sources. Folders without an
    ``__init__.py`` get an empty one: without, nothing below them is found.
    """
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]["packages"]
    shutil.rmtree(TREE, ignore_errors=True)
    for package, folder in sorted(table.items()):
        target = TREE / package
        target.mkdir(parents=True)
        for source in (ROOT / folder).iterdir():
            (target / source.name).symlink_to(source)
        if not (target / "__init__.py").exists():
            (target / "__init__.py").touch()


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    _places.clear()
    for file in [file for file in files if file.src_uri.startswith("notebooks/")]:
        files.remove(file)  # the pages made of them are what is shown
    waiting = [
        "README.md",
        *(f"{NOTEBOOKS}{path.name}" for path in sorted((ROOT / NOTEBOOKS).glob("*.ipynb"))),
    ]
    for file in files.documentation_pages():
        place = posixpath.join("docs", file.src_uri)
        _places[file.src_uri] = place
        waiting += _linked(place)
    while waiting:
        place = waiting.pop()
        uri = _uri(place)
        if (place.startswith("docs/") and place.endswith(SHOWN)) or uri is None or uri in _places:
            continue
        _places[uri] = place
        path = ROOT / place
        if place.endswith(".md"):
            text = path.read_text()
            waiting += _linked(place)
        elif path.suffix == ".ipynb":
            text = notebook_page(path)
        elif path.suffix in (".png", ".svg"):
            files.append(File.generated(config, uri, content=path.read_bytes()))
            continue
        else:
            text = _listing(place, path.read_text())
        files.append(File.generated(config, uri, content=text))
    files.append(File.generated(config, "reference.md", content=reference()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links out of docs/ lead to the pages that stand for them; pictures follow the colours of the page."""
    uri = page.file.src_uri
    if uri == "explorer.md" and (EXPLORER / "index.html").is_file():
        title, _, rest = markdown.partition("\n")
        markdown = (
            f'{title}\n\n<a href="explorer/index.html">Open it here</a>: it runs in this browser.\n{rest}'
        )
    place = _places.get(uri)
    if place is None or uri.startswith("source/"):
        return markdown

    def link(match: re.Match[str]) -> str:
        target = _target(place, match[2])
        if target is None:
            return match[0]
        found = _uri(target)
        if found is None:  # a folder: no page stands for it
            return f"{match[1]}{posixpath.relpath('index.md', posixpath.dirname(uri) or '.')})"
        return f"{match[1]}{posixpath.relpath(found, posixpath.dirname(uri) or '.')}{match[3]}"

    def picture(match: re.Match[str]) -> str:
        name = posixpath.basename(match[1])
        images = posixpath.relpath("images", posixpath.dirname(uri) or ".")
        return "".join(
            f"![{match[2]}]({images}/{name}-{theme}.svg#only-{theme})" for theme in ("light", "dark")
        )

    return _outside_code(lambda text: LINK.sub(link, PICTURE.sub(picture, text)), markdown)


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    r"""In a table ``\|`` is a bar, also inside of code, as GitHub shows it: Markdown would keep the backslash."""

    def cell(match: re.Match[str]) -> str:
        return CODE.sub(lambda code: code[0].replace("\\|", "|"), match[0])

    return CELL.sub(cell, html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Name the search box: the theme gives it a role only."""
    return output.replace(
        'data-md-component="search" role="dialog"',
        'data-md-component="search" role="dialog" aria-label="Search"',
    )


def on_post_build(config: Any) -> None:
    """Put the explorer without a server beside the pages, where ``make explorer-page`` has built it."""
    if (EXPLORER / "index.html").is_file():
        shutil.copytree(EXPLORER, Path(config["site_dir"]) / "explorer", dirs_exist_ok=True)


def public_names() -> dict[str, str]:
    """Every public name and the module that has it, as ``tokenfst/__init__.py`` says."""
    tree = ast.parse((ROOT / "src" / "tokenfst" / "__init__.py").read_text())
    values = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in ("__all__", "_PLACES")
    }
    places = values["_PLACES"] | {"load": "decoding.token_automata.token_automaton.TokenAutomaton"}
    return {name: places[name] for name in values["__all__"]}


def reference() -> str:
    """The page of all public names, in the order of their rooms."""
    titles = {
        "automata": "Constraints",
        "tokenizers": "Vocabularies",
        "decoding": "Decoding",
        "_native": "The core",
    }
    found: dict[str, list[str]] = {title: [] for title in [*titles.values(), "Budgets and errors"]}
    for name, module in public_names().items():
        title = titles.get(module.partition(".")[0], "Budgets and errors")
        found[title].append(f"::: tokenfst.{module}.{name}\n    options:\n      heading: tokenfst.{name}\n")
    parts = [
        "# Reference",
        "Every public name. Each is imported from `tokenfst` itself, whatever module it is shown in.",
    ]
    for title, entries in found.items():
        parts += [f"## {title}", *entries]
    return "\n\n".join(parts) + "\n"


def notebook_page(path: Path) -> str:
    """A notebook as a page: its texts, its code, and under it what it showed: a picture, or a card, or else text."""
    parts = []
    for cell in json.loads(path.read_text())["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            picture = "".join(data.get("image/svg+xml") or data.get("text/html") or ())
            if picture:
                lines = [
                    line for line in picture.splitlines() if line.strip()
                ]  # an empty line would end the block
                parts.append('<div class="notebook-picture">\n' + "\n".join(lines) + "\n</div>")
            else:
                text = "".join(output.get("text") or data["text/plain"])
                parts.append(f"```text\n{text.rstrip()}\n```")
    parts.append("Made by `python docs/notebooks/run.py`; run and compared by the tests.")
    return "\n\n".join(parts) + "\n"


def _linked(place: str) -> list[str]:
    """The files outside of docs/ that a page links to."""
    found: list[str] = []

    def note(text: str) -> str:
        found.extend(target for match in LINK.finditer(text) if (target := _target(place, match[2])))
        return text

    _outside_code(note, (ROOT / place).read_text())
    return found


def _target(place: str, link: str) -> str | None:
    """The file or folder of the repository that a link means; None: it stays as it is."""
    if "://" in link or link.startswith("mailto:"):
        return None
    target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link))
    stays = place.startswith("docs/") and target.startswith("docs/") and target.endswith(SHOWN)
    return target if not stays and (ROOT / target).exists() else None


def _uri(place: str) -> str | None:
    """The page that stands for a file; None for a folder."""
    if place == "README.md":
        return "index.md"
    if place.startswith("docs/") and place.endswith(SHOWN):
        return place.removeprefix("docs/")
    if place.startswith(NOTEBOOKS) and place.endswith(".ipynb"):
        return f"{place.removeprefix('docs/').removesuffix('.ipynb')}.md"
    if (ROOT / place).is_dir():
        return None
    return place if place.endswith(SHOWN) else f"source/{place}.md"


def _listing(place: str, text: str) -> str:
    language = LANGUAGES.get(Path(place).suffix, "text")
    fence = "`" * 8
    return f"---\nsearch:\n  exclude: true\n---\n\n# {place}\n\n{fence}{language}\n{text}\n{fence}\n"


def _outside_code(change: Any, markdown: str) -> str:
    """``change`` of what stands outside of fenced code."""
    parts = re.split(r"(^ *```.*?^ *```\s*?$)", markdown, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(parts))
