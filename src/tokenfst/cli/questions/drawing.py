"""``tokenfst draw``: small machines as pictures."""

from __future__ import annotations

import contextlib
import enum
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tokenfst.automata.pictures.drawing import FORMATS, Drawing
from tokenfst.budget import Budget
from tokenfst.cli.constraints import options
from tokenfst.cli.constraints.constraints import Constraint, of_words
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.input.tokens import VocabularyOptions
from tokenfst.cli.output.terminal import Exit, UsageError, counted, note, say, say_json
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.token_automata.drawing import draw_arcs
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.decoding.token_automata.tracing import trace
from tokenfst.errors import DrawingError


class Format(enum.StrEnum):
    """The formats of pictures."""

    SVG = "svg"
    PNG = "png"
    HTML = "html"
    DOT = "dot"


_MACHINE_STATES, _RULE_STATES = 100, 400
"""The default maximum numbers of states that are drawn: of one automaton, and of all rules of a grammar together."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "draw", draw_command)


def draw_command(
    *,
    constraining: options.ConstraintOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write: .svg, .png, .html or .dot. If not given, the picture goes to "
            "standard output.",
        ),
    ] = None,
    format: Annotated[
        Format | None,
        typer.Option(
            help="The picture's format. If not given, it follows from the name of FILE; without "
            "FILE it is dot."
        ),
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(
            "--text",
            metavar="TEXT",
            help="Draw a heat map of the masks along TEXT instead of the automaton (needs "
            "--vocabulary). TEXT is divided into the longest tokens that fit.",
        ),
    ] = None,
    minimize: Annotated[bool, typer.Option("--minimize", help="Draw the minimal automaton.")] = False,
    max_states: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help=f"Maximum number of states to draw ({_MACHINE_STATES}; for the rules of a grammar, {_RULE_STATES} "
            "in all).",
        ),
    ] = None,
    tokenizing: VocabularyOptions,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Draw the automaton of a constraint: over bytes, or with --vocabulary over tokens.

    For a grammar, draw one network for each rule; with --depth, --minimize or --vocabulary, draw the automaton.
    With --text, draw the masks along a text. The format dot needs no other program; the other formats need
    Graphviz.
    """
    budget = budgeting.read()
    chosen = _format(format, output)
    if json and output is None:
        raise UsageError("--json needs --output; without it, stdout holds the picture")
    given = constraining.one(budget)
    if text is not None:
        if minimize or max_states is not None:
            raise UsageError("--minimize and --max-states are for machines, not for --text")
        picture, tokens = draw_masks(given, text, tokenizing, budget)
        source, counts, what = given.source, {"tokens": tokens}, f"the masks of {counted(tokens, 'token')}"
    elif given.grammar is not None and not (
        minimize or constraining.depth is not None or tokenizing.vocabulary is not None
    ):
        rules = len(given.grammar.rules)
        source, counts, what = given.grammar.source, {"rules": rules}, counted(rules, "rule")
        with _remedies():
            picture = given.grammar.draw(max_states=max_states or _RULE_STATES)
    else:
        picture, states = _machine(given, minimize, max_states or _MACHINE_STATES, tokenizing, budget)
        source, counts, what = given.source, {"states": states}, counted(states, "state")
    data = picture.render(chosen)
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data) if chosen == "png" else print(data.decode(), end="")
        return Exit.YES
    output.write_bytes(data)
    if json:
        say_json(
            {"command": "draw", "source": source, "output": str(output), **counts, "bytes": len(data)},
        )
    else:
        say(f"{output}: {what} of {source}")
    return Exit.YES


def _format(given: Format | None, output: Path | None) -> str:
    """The format of the picture."""
    if given is not None:
        return given.value
    if output is None:
        return "dot"
    found = output.suffix.lstrip(".").lower()
    if found not in FORMATS:
        raise UsageError(
            f"--output ends in .{', .'.join(FORMATS)}, which {str(output)!r} does not: say --format"
        )
    return found


def draw_masks(
    given: Constraint, text: str, tokenizing: VocabularyOptions, budget: Budget
) -> tuple[Drawing, int]:
    """The heat map of the masks along a text, and the number of its tokens; a note says where the text is refused."""
    vocabulary = tokenizing.need("--text")
    automaton = given.token_automaton(vocabulary, budget, tokenizing)
    path = trace(automaton.matcher(), vocabulary.encode_greedy(os.fsencode(text)), vocabulary)
    if path.refused is not None:
        note(f"token {path.taken + 1:,} of the text is not allowed: the rest is left out")
    return path.draw(given.source), len(path.steps) - (path.refused is None)


def _machine(
    given: Constraint,
    minimize: bool,
    max_states: int,
    tokenizing: VocabularyOptions,
    budget: Budget,
) -> tuple[Drawing, int]:
    """A picture of the machine over bytes, symbols or tokens, and its number of states."""
    if given.automaton is not None and tokenizing.vocabulary is None:
        states = given.automaton.num_states - 1
        _check_size(states, max_states)
        return given.automaton.draw(max_states=max_states), states
    if minimize:
        given = of_words(given.language.minimize())
    if tokenizing.vocabulary is None:
        states = given.language.size().states
        _check_size(states, max_states)
        return given.language.draw(max_states=max_states), states
    automaton = given.token_automaton(tokenizing.need("draw"), budget, tokenizing)
    if isinstance(automaton, CanonicalAutomaton):
        return draw_canonical(automaton, max_states)
    return draw_tokens(automaton, max_states)


@contextlib.contextmanager
def _remedies() -> Iterator[None]:
    """Inside, ``DrawingError`` names the option of the command line instead of Python's parameter."""
    try:
        yield
    except DrawingError as error:
        raise DrawingError(str(error).replace("pass a larger max_states", "raise --max-states")) from error


def _check_size(states: int, most: int, bound: str = "") -> None:
    """Raise ``DrawingError``, with the options of the command line, if there are too many states."""
    if states > most:
        raise DrawingError(
            f"the machine has {bound}{counted(states, 'state')}, and at most {most:,} are drawn: try "
            "--minimize, draw a part "
            "of the constraint, or raise --max-states"
        )


def draw_tokens(automaton: TokenAutomaton, max_states: int) -> tuple[Drawing, int]:
    """A picture of a token automaton, and its number of states."""
    states = automaton.expand().stats().states - 1
    _check_size(states, max_states)
    return automaton.draw(max_states=max_states), states


def draw_canonical(automaton: CanonicalAutomaton, max_states: int) -> tuple[Drawing, int]:
    """The same for canonical sequences. A state is a position in text and segmentation, with the last token where it
    matters. Raises ``DrawingError`` as soon as there are more than ``max_states``.
    """
    numbers = {automaton.start: 0}
    arcs: list[tuple[int, int, int]] = []
    final = []
    pending = [automaton.start]
    for node in pending:
        if automaton.accepting(node):
            final.append(numbers[node])
        mask = automaton.mask(node) & ~automaton.end_tokens
        for token in np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist():
            following = automaton.advance(node, token)
            assert following is not None, "the mask allows it"
            if following not in numbers:
                numbers[following] = len(numbers)
                pending.append(following)
                _check_size(len(numbers), max_states, "at least ")
            arcs.append((numbers[node], token, numbers[following]))
    return draw_arcs(automaton.vocabulary, arcs, 0, final, automaton.source), len(numbers)
