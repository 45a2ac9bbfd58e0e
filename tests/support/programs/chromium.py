"""A Chromium of the system for tests that look at pages, by Playwright; skipped with a reason where one of them is
missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, once for all tests of a file."""
    playwright = pytest.importorskip("playwright.sync_api")
    if BROWSER is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A tab. What its console says against it fails the test."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.set_default_timeout(60_000)
    complaints: list[str] = []
    tab.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    yield tab
    tab.close()
    assert not complaints


def serious(page: Any) -> list[str]:
    """What axe-core finds on a page that is serious or critical."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in axe.Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]
