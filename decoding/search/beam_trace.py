"""``BeamTrace``: what a beam search kept after each step, and which sequences ended, also as a picture."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tokenfst.automata.pictures.drawing import Drawing, Edge, check_size, draw_graph
from tokenfst.decoding.token_automata.drawing import named
from tokenfst.errors import DrawingError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Beam:
    """A prefix in a search: its ``tokens`` after the prompt, ln of the model's probability of them (``log_prob``), and
    the sum of scores by which it was chosen (``pushed``).
    """

    tokens: tuple[int, ...]
    log_prob: float
    pushed: float


@dataclass(slots=True)
class BeamTrace:
    """The steps of one call: ``automata_beam_search(..., trace=trace)`` fills an empty ``BeamTrace()``.

    ``kept``: for each prompt, its beams after each step, best first; a settled prompt has no further steps.
    ``finished``: for each prompt, the sequences that ended, in the order in which they did. ``vocabulary``: that of the
    search; None before it.
    """

    kept: list[list[tuple[Beam, ...]]] = field(default_factory=list)
    finished: list[list[Beam]] = field(default_factory=list)
    vocabulary: Vocabulary | None = field(default=None, repr=False)

    def begin(self, prompts: int, vocabulary: Vocabulary) -> None:
        """Forget an earlier call, and expect the steps of ``prompts`` prompts."""
        self.kept, self.finished = [[] for _ in range(prompts)], [[] for _ in range(prompts)]
        self.vocabulary = vocabulary

    def keep(self, prompt: int, beams: Iterable[Beam]) -> None:
        """Note the beams of a prompt after a step."""
        self.kept[prompt].append(tuple(beams))

    def draw(self, prompt: int = 0, title: str = "", max_states: int = 200) -> Drawing:
        """The prefixes that were kept, as a tree: an arrow adds a token and shows ln of its probability. A doubled
        circle is a sequence that ended; any other prefix without outgoing arrows was pruned. End tokens are not drawn.

        Raises ``DrawingError`` for an empty trace and for more than ``max_states`` prefixes.
        """
        vocabulary = self.vocabulary
        if vocabulary is None:
            raise DrawingError("the trace is empty: pass it to automata_beam_search(..., trace=trace)")
        ended = [_text(beam, vocabulary) for beam in self.finished[prompt]]
        whole = {
            beam.tokens: beam for beam in self.finished[prompt] if _text(beam, vocabulary) == beam.tokens
        }
        beams = {beam.tokens: beam for step in self.kept[prompt] for beam in step} | whole
        numbers = {tokens: number for number, tokens in enumerate(sorted({(), *beams}))}
        check_size(len(numbers), max_states)
        edges = []
        for tokens, beam in beams.items():
            before = beams.get(tokens[:-1])
            added = beam.log_prob - (before.log_prob if before else 0.0)
            name = named(vocabulary, tokens[-1], first=len(tokens) == 1)
            edges.append(Edge(numbers[tokens[:-1]], numbers[tokens], f"{name} {added:.2f}"))
        return draw_graph(0, {numbers[tokens] for tokens in ended}, edges, title)

    def _repr_svg_(self) -> str | None:
        return self.draw().svg_or_none() if self.kept else None


def _text(beam: Beam, vocabulary: Vocabulary) -> tuple[int, ...]:
    """The tokens of a finished sequence without its end token."""
    ends = beam.tokens and beam.tokens[-1] in vocabulary.eos_token_ids
    return beam.tokens[:-1] if ends else beam.tokens
