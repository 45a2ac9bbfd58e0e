"""``tokenfst draw``: small machines as pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tokenfst.automata.drawing import FORMATS, Drawing, Edge, draw_graph
from tokenfst.cli import options
from tokenfst.cli.terminal import Exit, UsageError, counted, quoted, say, say_json
from tokenfst.decoding.token_automaton import TokenAutomaton
from tokenfst.errors import DrawingError

_SHOWN_TOKENS = 5


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("draw", help=options.command_help(draw_command))(draw_command)


def draw_command(
    constraint: Annotated[
        str | None,
        typer.Argument(
            metavar="CONSTRAINT", show_default=False, help="A pattern, or an artifact (*.safetensors)."
        ),
    ] = None,
    file: options.PatternFile = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Picture to write: .svg, .png or .dot. Without: dot text."
        ),
    ] = None,
    minimize: Annotated[
        bool, typer.Option("--minimize", help="Draw the least machine (needs OpenFst).")
    ] = False,
    max_states: Annotated[int, typer.Option(metavar="N", min=1, help="Most states to draw.")] = 100,
    vocabulary: options.VocabularySpec = None,
    flags: options.Flags = "",
    vocab_size: options.VocabularySize = None,
    eos_token_id: options.EndTokens = None,
    budget_states: options.BudgetStates = options.STATES,
    budget_bytes: options.BudgetBytes = options.BYTES,
    budget_seconds: options.BudgetSeconds = options.SECONDS,
    budget_positions: options.BudgetPositions = options.POSITIONS,
    json: options.Json = False,
) -> int:
    """Draw the machine of a constraint: over bytes, or with --vocabulary over tokens.

    Dot text needs no other program; svg and png need Graphviz.
    """
    budget = options.make_budget(budget_states, budget_bytes, budget_seconds, budget_positions)
    if output is not None and output.suffix.lstrip(".").lower() not in FORMATS:
        raise UsageError(f"--output ends in .{', .'.join(FORMATS)}, which {str(output)!r} does not")
    if json and output is None:
        raise UsageError("--json needs --output; without it, stdout holds the dot text")
    given = options.one_constraint(constraint, file, flags, budget)
    language = given.language.minimize() if minimize else given.language
    if vocabulary is None:
        states = language.size().states
        _check_size(states, max_states)
        picture = language.draw(max_states=max_states)
    else:
        if minimize:
            given = options.Constraint(language)
        table = options.need_vocabulary(vocabulary, vocab_size, eos_token_id, "draw")
        automaton = given.token_automaton(table, budget)
        picture, states = draw_tokens(automaton, max_states)
    if output is None:
        print(picture.dot, end="")
        return Exit.YES
    data = picture.render(output.suffix.lstrip(".").lower())
    output.write_bytes(data)
    if json:
        say_json(
            {
                "command": "draw",
                "source": language.source,
                "output": str(output),
                "states": states,
                "bytes": len(data),
            }
        )
    else:
        say(f"{output}: {counted(states, 'state')} of {language.source}")
    return Exit.YES


def _check_size(states: int, most: int) -> None:
    """``DrawingError`` with the command line's remedies."""
    if states > most:
        raise DrawingError(
            f"the machine has {states:,} states, and at most {most:,} are drawn: try --minimize, draw a part "
            "of the constraint, or raise --max-states"
        )


def draw_tokens(automaton: TokenAutomaton, max_states: int) -> tuple[Drawing, int]:
    """A picture of a token automaton, and its number of states. One edge for two states, labelled with some
    of the tokens between them. End tokens are not drawn: doubled states accept."""
    _check_size(automaton.expand().stats().states - 1, max_states)
    source, token, target, states, start, final = automaton.arcs()
    between: dict[tuple[int, int], list[int]] = {}
    for arc in np.lexsort((token, target, source)).tolist():
        between.setdefault((int(source[arc]), int(target[arc])), []).append(int(token[arc]))
    texts = automaton.vocabulary.initial_tokens or automaton.vocabulary.tokens
    edges = []
    for (begin, end), ids in between.items():
        table = texts if begin == start else automaton.vocabulary.tokens
        shown = ", ".join(quoted(table[each], 20) for each in ids[:_SHOWN_TOKENS])
        more = f", … ({len(ids):,} tokens)" if len(ids) > _SHOWN_TOKENS else ""
        edges.append(Edge(begin, end, shown + more))
    return draw_graph(start, final.tolist(), edges, automaton.source), states
