"""The site: every page and every public name is in it, and the built pages work in a browser.

What looks at the built pages (marked ``site``) wants ``make site`` before, Playwright, and a Chromium of the system.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.programs.chromium import serious
from support.programs.static_files import served

import tokenfst

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "site"
built = pytest.mark.site
PAGES = [
    "index.html",
    "quickstart.html",
    "constraints/json-schema.html",
    "routes/serving.html",
    "research/pictures.html",
    "notebooks/constraints.html",
    "leaderboard.html",
    "reference.html",
]


def test_every_page_has_a_place_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    placed = re.findall(r"[^\s]+\.md", navigation)
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(placed), f"mkdocs.yml does not place {pages - set(placed)}"
    assert len(placed) == len(set(placed)), "a page is placed twice"


def test_every_picture_is_on_a_page() -> None:
    """Those of a dark page stand beside those of a light one."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+\.(?:svg|png))", page.read_text())}
    assert {path.name for path in (ROOT / "docs" / "images").iterdir()} == shown
    assert {name.replace("-light", "-dark") for name in shown if "-light" in name} <= shown


def test_composition_fragments_distances_and_stacks_are_drawn() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "pictures.py"))
    made = script["explained"]()
    assert list(made) == ["language", "detokenizer", "automaton", "fragments", "distances", "stacks"]
    assert 'label="3\\n2 left"' in made["distances"].dot
    for lines, tokens, rules in script["COLOURS"].values():
        dot = script["coloured"](made["stacks"], lines, tokens, rules).dot
        assert f'fontcolor="{tokens}"' in dot and f'bgcolor="{rules}"' in dot and "labelloc=t" not in dot


@built
def test_the_reference_has_every_public_name() -> None:
    page = (SITE / "reference.html").read_text()
    shown = set(re.findall(r'<h3 id="[^"]*"[^>]*>\s*(?:<[^>]*>\s*)*tokenfst\.(\w+)', page))
    assert shown == set(tokenfst.__all__)


def test_a_bar_in_a_tables_code_has_no_backslash() -> None:
    """Markdown keeps it, and code was to be copied with it on 18 pages."""
    markdown = pytest.importorskip("markdown")
    pytest.importorskip("mkdocs")
    hooks = runpy.run_path(str(ROOT / "tools" / "site_hooks.py"))
    table = "| a | b |\n|---|---|\n| `Person \\| None` | x |\n\n`r'a\\|b'`"
    html = markdown.markdown(table, extensions=["tables"])
    shown = hooks["on_page_content"](html, None, None, None)
    assert "<td><code>Person | None</code></td>" in shown and "<code>r'a\\|b'</code>" in shown


@built
def test_no_page_loads_anything_from_elsewhere() -> None:
    for path in SITE.rglob("*.html"):
        for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", path.read_text()):
            found = re.search(r'(?:src|href)="(https?:)?//', tag)
            assert found is None or 'rel="canonical"' in tag, f"{path.name}: {tag}"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of the built pages on this machine."""
    with served(SITE) as found:
        yield found.rstrip("/")


@built
def test_the_search_finds_a_keyword(page: Any, address: str) -> None:
    page.goto(f"{address}/index.html")
    page.locator(".md-search__input").click()
    page.keyboard.type("uniqueItems")
    page.locator('.md-search-result__item a[href*="json-schema.html"]').first.wait_for()


@built
def test_the_routes_are_reached_from_the_first_page(page: Any, address: str) -> None:
    page.goto(f"{address}/index.html")
    for tab in ("Structured output", "Serving", "Research", "Contributing", "Reference"):
        page.locator(".md-tabs__link", has_text=tab).click()
        page.wait_for_load_state()
        assert page.locator("h1").count() == 1


@built
@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_a_phone(page: Any, address: str, name: str) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(f"{address}/{name}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@built
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES[:-1])
def test_no_serious_finding_of_accessibility(page: Any, address: str, name: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/{name}")
    assert not (found := serious(page)), "\n".join(found)


@built
def test_the_explorer_answers_there_without_a_server(page: Any, address: str) -> None:
    if not (SITE / "explorer" / "index.html").is_file():
        pytest.skip("the site was built without the explorer: make explorer-page, then make site")
    page.goto(f"{address}/explorer.html")
    page.locator("a", has_text="Open it here").click()
    page.locator("#tokens button", has_text='"yes"').wait_for()
