"""The explorer's page in Chromium: ten scenarios, by the keyboard alone too, over a real vocabulary; of the page that a
server answers, and of the page without one.

``make test-explore``; it wants Playwright and a Chromium of the system, and for the second page what
``make explorer-page`` needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.programs.chromium import serious
from support.programs.static_files import served

from tokenfst import Vocabulary, compile, regex
from tokenfst.explore.kinds import KINDS
from tokenfst.explore.opened import Opened
from tokenfst.explore.questions import Explorer
from tokenfst.explore.server import Server

pytestmark = pytest.mark.explore
BUILT = Path(__file__).resolve().parents[2] / "build" / "explorer"


@pytest.fixture(scope="module", params=["server", "worker"])
def address(request: pytest.FixtureRequest, tekken: Vocabulary) -> Iterator[str]:
    """Of the page, and who answers it."""
    if request.param == "server":
        with Server(Explorer(tekken)) as made:
            made.start()
            yield made.address
            made.shutdown()
        return
    if not (BUILT / "index.html").is_file():
        pytest.skip("there is no page without a server: make explorer-page")
    with served(BUILT) as found:
        yield found


@pytest.fixture
def opened(page: Any, address: str) -> Any:
    """The page with its first example open; it asks no other host."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    page.locator("#tokens button").first.wait_for()
    page.locator("#picture svg").wait_for()
    yield page
    assert all(url.startswith(address) for url in asked), asked


def settled(page: Any) -> None:
    """Wait until nothing is asked any more."""
    expect(page.locator("#busy")).to_have_text("")


def says(page: Any, where: str, part: str) -> None:
    """Wait until a text is in some place, and nothing is asked any more."""
    expect(page.locator(where)).to_contain_text(part)
    settled(page)


def expect(locator: Any) -> Any:
    """Playwright's way to wait for something: the page's policy forbids others."""
    from playwright.sync_api import expect as wait_for

    wait_for.set_options(timeout=60_000)
    return wait_for(locator)


def write(page: Any, kind: str, text: str) -> None:
    page.select_option("#kind", kind)
    page.fill("#source", text)
    page.click("#form button[type=submit]")
    settled(page)


def facts(page: Any, where: str = "#here") -> dict[str, str]:
    names = page.locator(f"{where} dt").all_text_contents()
    return dict(zip(names, page.locator(f"{where} dd").all_text_contents(), strict=True))


def tokens(page: Any) -> list[str]:
    return list(page.locator("#tokens button").all_text_contents())


def tab_to(page: Any, selector: str, *, back: bool = False) -> None:
    """Press Tab until an element has the focus."""
    for _ in range(200):
        if page.evaluate("wanted => document.activeElement?.matches(wanted) ?? false", selector):
            return
        page.keyboard.press("Shift+Tab" if back else "Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


def test_1_a_pattern_is_opened_and_walked_by_its_tokens(opened: Any) -> None:
    write(opened, "regex", "(yes|no)!")
    assert facts(opened, "#facts")["Texts"] == "finitely many"
    opened.locator("#tokens button", has_text='"yes"').click()
    settled(opened)
    assert opened.locator("#text").text_content() == '"yes"'
    assert facts(opened)["Forced"] == '"!"' and facts(opened)["Distance left"] == "1 token"
    opened.click("#forced")
    settled(opened)
    assert facts(opened)["May end here"] == "yes"
    opened.locator("#tokens button.ends").click()
    settled(opened)
    assert "complete" in facts(opened)["State"]
    opened.click("#back")
    settled(opened)
    assert opened.locator("#text").text_content() == '"yes!"'
    opened.click("#restart")
    settled(opened)
    assert opened.locator("#chips li").count() == 0


def test_2_every_kind_and_example_opens(opened: Any) -> None:
    for kind in KINDS.values():
        opened.select_option("#kind", kind.name)
        for title, _ in kind.examples:
            opened.select_option("#example", label=title)
            opened.click("#form button[type=submit]")
            settled(opened)
            assert opened.locator("#error").is_hidden(), opened.locator("#error").text_content()
            assert opened.locator("#picture circle").count() > 1 and tokens(opened)


def test_3_what_is_wrong_with_a_constraint_is_shown(opened: Any) -> None:
    write(opened, "regex", "(yes|no")
    assert "missing )" in opened.locator("#error").text_content()
    assert opened.locator("#next").is_hidden()
    write(opened, "json_schema", '{"type": "strin"}')
    assert "strin" in opened.locator("#error").text_content()
    write(opened, "json_schema", '{"type": "string"}')
    assert opened.locator("#error").is_hidden() and tokens(opened)


def test_4_a_text_is_walked_and_its_refusal_has_a_caret(opened: Any) -> None:
    opened.select_option("#kind", "json_schema")
    opened.click("#form button[type=submit]")
    settled(opened)
    opened.fill("#candidate", '{"name": "Ada", "born": "1815-13-10"}')
    opened.click("#walk-form button[type=submit]")
    settled(opened)
    verdict = opened.locator("#verdict").text_content()
    said, shown, caret, *_ = verdict.splitlines()[1:]
    assert "expected [0-2]" in said and shown[: caret.index("^")].endswith("1815-1")
    assert "not this one" in opened.locator("#chips button").last.get_attribute("aria-label")
    opened.fill("#candidate", '{"name": "Ada", "born": "1815-12-10"}')
    opened.click("#walk-form button[type=submit]")
    settled(opened)
    assert "may end here" in opened.locator("#verdict").text_content()


def test_5_tokens_are_searched_and_paged(opened: Any) -> None:
    write(opened, "regex", "(?s:.*)")
    first = tokens(opened)
    assert "Page 1 of" in opened.locator("#page").text_content() and opened.locator("#previous").is_disabled()
    opened.click("#following")
    settled(opened)
    assert not set(tokens(opened)) & set(first)
    opened.fill("#search", "automat")
    says(opened, "#count", "match")
    assert tokens(opened) and all("automat" in text for text in tokens(opened))
    assert "Page 1 of 1" in opened.locator("#page").text_content()
    opened.fill("#search", "#1234")
    expect(opened.locator("#tokens button")).to_have_count(1)
    assert tokens(opened)[0].endswith("1234")


def test_6_the_picture_is_zoomed_and_moved(opened: Any) -> None:
    def view() -> list[float]:
        return [float(each) for each in opened.locator("#picture svg").get_attribute("viewBox").split()]

    whole = view()
    opened.click("#zoom-in")
    near = view()
    assert near[2] < whole[2]
    opened.focus("#picture")
    opened.keyboard.press("ArrowRight")
    assert view()[0] > near[0] and view()[2] == near[2]
    box = opened.locator("#picture").bounding_box()
    before = view()
    opened.mouse.move(box["x"] + 200, box["y"] + 100)
    opened.mouse.down()
    opened.mouse.move(box["x"] + 100, box["y"] + 150, steps=4)
    opened.mouse.up()
    assert view()[0] > before[0] and view()[1] < before[1]
    before = opened.locator("#picture svg").get_attribute("viewBox")
    opened.mouse.wheel(0, 300)
    expect(opened.locator("#picture svg")).not_to_have_attribute("viewBox", before)
    assert view()[2] > near[2]
    opened.keyboard.press("0")
    assert view() == whole


def test_the_first_example_is_seen_whole(opened: Any) -> None:
    """Each state and label lies inside of the panel, in letters that can be read."""
    box = opened.locator("#picture").bounding_box()
    parts = opened.locator("#picture svg > g").all()
    assert len(parts) > 20
    for part in parts:
        found = part.bounding_box()
        assert found["x"] >= box["x"] and found["x"] + found["width"] <= box["x"] + box["width"]
        assert found["y"] >= box["y"] and found["y"] + found["height"] <= box["y"] + box["height"]
    assert opened.locator("#picture svg .number").first.bounding_box()["height"] > 7


def test_7_a_large_automaton_says_what_is_left_out(opened: Any) -> None:
    write(opened, "regex", "[ab]{60}c")
    assert "40 states nearest to the start" in opened.locator("#left-out").text_content()
    opened.select_option("#states", "20")
    says(opened, "#left-out", "20 states")
    assert opened.locator("#picture g.open").count() == 1
    opened.select_option("#around", "here")
    says(opened, "#left-out", "was reached")
    opened.locator("#tokens button").first.click()
    settled(opened)
    assert opened.locator("#picture g.here .number").text_content() == "0"
    opened.click("summary")
    assert opened.locator("#state-list tbody tr").count() == 20
    assert "at least" in opened.locator("#state-list tbody tr").first.text_content()


def test_8_a_limit_of_tokens_and_the_question_why_not(opened: Any, tekken: Vocabulary) -> None:
    write(opened, "regex", "a*b")
    before = len(tokens(opened))
    opened.fill("#limit", "1")
    says(opened, "#here", "Tokens left")
    assert 0 < len(tokens(opened)) < before
    opened.fill("#ask", str(tekken.encode_greedy(b"a")[0]))
    opened.click("#ask-form button")
    settled(opened)
    assert "within 1 token" in opened.locator("#verdict").text_content()
    opened.fill("#ask", str(tekken.encode_greedy(b"zebra")[0]))
    opened.click("#ask-form button")
    settled(opened)
    assert "leaves the language" in opened.locator("#verdict").text_content()


def test_9_the_shortest_text_is_put_in_and_is_in_the_constraint(opened: Any) -> None:
    write(opened, "gbnf", 'root ::= "(" root ")" | "x" "y"?')
    opened.click("#shortest")
    assert opened.input_value("#candidate") == "x"
    opened.click("#check")
    settled(opened)
    assert "Yes" in opened.locator("#verdict").text_content()
    opened.fill("#candidate", "((x)")
    opened.click("#check")
    settled(opened)
    assert "stops too early" in opened.locator("#verdict").text_content()


def test_10_all_of_it_by_the_keyboard_alone(opened: Any) -> None:
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.className") == "skip"
    tab_to(opened, "#kind")
    opened.keyboard.type("Grammar (G")
    assert opened.input_value("#kind") == "gbnf"
    tab_to(opened, "#source")
    opened.keyboard.press("Control+A")
    opened.keyboard.type('root ::= "<" root ">" | "x"')
    opened.keyboard.press("Control+Enter")
    settled(opened)
    tab_to(opened, "#picture")
    before = opened.locator("#picture svg").get_attribute("viewBox")
    opened.keyboard.press("+")
    assert opened.locator("#picture svg").get_attribute("viewBox") != before
    tab_to(opened, "summary")
    opened.keyboard.press("Enter")
    assert opened.locator("#state-list table").is_visible()
    tab_to(opened, "#search")
    opened.keyboard.type("x")
    says(opened, "#count", "match")
    tab_to(opened, "#tokens button")
    opened.keyboard.press("Enter")
    settled(opened)
    assert opened.locator("#text").text_content() == '"x"'
    tab_to(opened, "#chips button", back=True)
    opened.keyboard.press("Space")
    settled(opened)
    assert opened.locator("#text").text_content() == '""'
    tab_to(opened, "#candidate")
    opened.keyboard.type("<x")
    tab_to(opened, "#check")
    opened.keyboard.press("Enter")
    settled(opened)
    assert 'expected ">"' in opened.locator("#verdict").text_content()
    tab_to(opened, "#walk-form button[type=submit]", back=True)
    opened.keyboard.press("Enter")
    settled(opened)
    assert opened.locator("#text").text_content() == '"<x"'
    tab_to(opened, "#restart", back=True)
    opened.keyboard.press("Enter")
    settled(opened)
    assert opened.locator("#text").text_content() == '""'


def test_the_constraint_of_the_command_line_is_open(page: Any, tekken: Vocabulary) -> None:
    given = regex("(left|right)")
    with Server(Explorer(tekken, given=Opened(compile(given, tekken), given, "mine"))) as server:
        server.start()
        page.goto(server.address)
        page.locator("#tokens button", has_text='"left"').wait_for()
        assert page.input_value("#kind") == "given" and page.input_value("#source") == "mine"
        server.shutdown()


def test_a_program_that_was_ended_is_noticed(page: Any, tekken: Vocabulary) -> None:
    with Server(Explorer(tekken)) as server:
        server.start()
        page.goto(server.address)
        page.locator("#picture svg").wait_for()
        page.route("**/ask/*", lambda route: route.fulfill(status=200, body="gone"))
        page.evaluate("document.getElementById('form').requestSubmit()")
        says(page, "#error", "still running")
        server.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_serious_finding_of_accessibility(opened: Any, scheme: str, width: int) -> None:
    opened.set_viewport_size({"width": width, "height": 900})
    opened.emulate_media(color_scheme=scheme)
    opened.select_option("#kind", "json_schema")
    opened.click("#form button[type=submit]")
    settled(opened)
    opened.fill("#candidate", '{"name": "Ada Lovelace", "born": "1815-13-10"}')
    opened.click("#walk-form button[type=submit]")
    settled(opened)
    opened.click("summary")
    assert not (found := serious(opened)), "\n".join(found)
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    write(opened, "regex", "(")
    assert not (found := serious(opened)), "\n".join(found)
