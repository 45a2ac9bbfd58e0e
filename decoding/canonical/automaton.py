"""Canonical tokenizations: for each text of a language, only the token sequence that the tokenizer itself produces.

``compile(language, vocabulary, tokenization="canonical")`` composes a token automaton with the automaton of the
tokenizer's output. Models are trained on canonical sequences only; they never saw other tokenizations of a text.

Idea. A token sequence is canonical if and only if the tokenizer's pattern splits its text only between tokens, and
every two adjacent tokens within one piece may be adjacent in the byte-pair encoding
(``tokenizers/segmentation/byte_pairs.py``). So a state is a triple: the state of the token automaton, the state of the
segmentation (``tokenizers/segmentation/cuts.py``), and the last token. The last token is dropped where a piece
certainly ends. Another token may follow if the language allows it and either a piece begins with it or it may be
adjacent to the last token. For each pair of the first two components two masks are kept, and

    mask = begins | (continues & followers(last token))

Invariant (convention 7, *exactness*, for canonical sequences): a token is allowed if and only if the tokens so far,
followed by it, are a prefix of a canonical sequence of the language. The constraint and the tokenizer can block each
other although each of them alone has a continuation. So a depth-first search, which tries the tokens nearest to
acceptance first, decides whether a path leads to acceptance. One path decides for a whole group of tokens: each token
that the path's first token may follow is alive. The search is exhaustive: a token for which it finds no path is dead.

Cost. Three passes over a mask where the masks are known, and 0.3 ms more for a last token that was not used recently;
milliseconds to seconds for each new pair of states. Rejected: masks that look only one step ahead (they lead into dead
ends), and a product with one state for each token (V times the states).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.locks import fork_safe_lock
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.artifacts import artifact, artifact_format
from tokenfst.decoding.canonical.lengths import CanonicalLengths
from tokenfst.decoding.canonical.matcher import CanonicalMatcher
from tokenfst.decoding.canonical.nodes import ENDS, NO_TOKEN, Node
from tokenfst.decoding.masks.bitmask import bitmask_from_ids
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ArtifactError,
    ArtifactVocabularyError,
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    TokenizationError,
    TokenLimitError,
)
from tokenfst.tokenizers.segmentation.cuts import DEAD
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_NO_WAY = -1
"""The cached result for a dead node. For other nodes the first token of a path to acceptance is cached, or ``ENDS``."""

_NEAREST = 32


_Bits = npt.NDArray[np.int32]


class CanonicalAutomaton:
    """The canonical token sequences of a language.

    Created by ``compile`` and ``load``. Threads may share it; one thread builds at a time. ``every_sequence``: the
    automaton of all token sequences of the language. ``unchanged``: whether the caller knows that no text of the
    language is changed by the tokenizer or contains added tokens.

    Raises ``TokenizationError`` if the vocabulary's tokenizer is not known or has no exact automaton here, or if it
    changes texts and it is not known that it does not change those of the language,
    ``ConstraintError`` for a grammar that needs a stack, ``EmptyLanguageError`` if no text of the language has a
    canonical sequence. Later calls raise ``BudgetExceeded`` if one search visits more than ``budget.states`` nodes, or
    if the call takes more than ``budget.seconds``; results found until then are kept. Masks beyond ``budget.bytes`` and
    nodes beyond ``budget.states`` are dropped and recomputed on demand.
    """

    @checked
    def __init__(self, automaton: TokenAutomaton, budget: Budget, unchanged: bool = False) -> None:
        self.vocabulary, self.source, self.budget = automaton.vocabulary, automaton.source, budget
        self.native, self.every_sequence = automaton.native, automaton
        if self.native.is_pushdown:
            raise ConstraintError(
                f"{self.source} needs a stack; canonical tokenizations are of regular languages. Compile its "
                "truncate(depth) instead"
            )
        if self.native.has_marks:
            raise ConstraintError(
                f"{self.source} has strings that must differ from each other (names of a JSON object, unique items), "
                'which no finite automaton remembers: make the schema with repeated_names="allow"'
            )
        self.tokenizer = tokenizer = byte_pair_tokenizer(self.vocabulary)
        if tokenizer.encoding.changes_texts and not unchanged:
            raise TokenizationError(
                f"the tokenizer of {self.vocabulary!r} changes texts or finds added tokens in them, and {self.source} "
                'may have such texts: make the automaton by compile(..., tokenization="canonical")'
            )
        self._lock = fork_safe_lock()
        self._where = f"the search for canonical token sequences of {self.source}"
        self.deadline = Deadline(budget, self._where)
        self._words = (len(self.vocabulary) + 31) // 32
        self.end_tokens = bitmask_from_ids(self.vocabulary.eos_token_ids, len(self.vocabulary)).ravel()
        self._arcs: OrderedDict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = OrderedDict()
        self._arcs_held = 0
        self._masks: dict[tuple[int, int], _Bits] = {}
        self._ways: dict[Node, int] = {}
        self._lengths = CanonicalLengths(self)
        self.start = Node(int(self.native.start), tokenizer.segmentation.start, NO_TOKEN)
        if not self.alive(self.start):
            raise EmptyLanguageError(
                f"no string of {self.source} has a canonical token sequence. Texts that are not UTF-8, or hold code "
                "points that are not assigned, have none"
            )

    def __reduce__(self) -> tuple[type[CanonicalAutomaton], tuple[TokenAutomaton, Budget, bool]]:
        return CanonicalAutomaton, (self.every_sequence, self.budget, True)

    def __copy__(self) -> CanonicalAutomaton:
        return self

    def __deepcopy__(self, memo: object) -> CanonicalAutomaton:
        return self

    def __repr__(self) -> str:
        return f"<CanonicalAutomaton {self.source!r}: {counted(len(self._masks), 'mask')}>"

    def expand(self) -> CanonicalAutomaton:
        """Compute all states and distances of the language ahead of time, like ``TokenAutomaton.expand``.

        Which sequences are canonical is still computed during the walk.
        """
        expanded = self.every_sequence.expand()
        return self if expanded is self.every_sequence else CanonicalAutomaton(expanded, self.budget, True)

    @checked
    def save(self, path: str | PathLike[str], *, expand: bool = True) -> None:
        """Write an artifact: the expanded automaton of all token sequences, and how the tokenizer makes tokens of a
        text, without its merges (docs/serving/format.md, version 3). With ``expand=False``, write the program of a lazy
        automaton (version 4).

        Which sequences are canonical is computed during a walk, also after loading. The file appears under its name
        only when it is complete. The same automaton gives the same bytes. Raises ``BudgetExceeded`` if the language
        exceeds its budget.
        """
        artifact.write_bytes(path, self.serialize(expand=expand))

    @checked
    def serialize(self, *, expand: bool = True) -> bytes:
        """The bytes that ``save`` writes."""
        return self.every_sequence.serialize(expand=expand, encoding=self.tokenizer.encoding)

    @classmethod
    @checked
    def load(
        cls, path: str | PathLike[str], vocabulary: Vocabulary, budget: Budget | None = None
    ) -> CanonicalAutomaton:
        """Read an artifact that ``save`` wrote. The first load for a vocabulary waits for its tokenizer's merges.

        Raises a subclass of ``ArtifactError`` if the file is not a valid artifact, and ``ArtifactVocabularyError`` if
        it was compiled for another vocabulary, or if this vocabulary's tokenizer makes tokens of a text in another
        way, or in one that is not known. ``budget`` bounds later constructions.
        """
        return cls.of_artifact(artifact.read(path), path, vocabulary, budget)

    @classmethod
    @checked
    def of_artifact(
        cls,
        found: artifact.Artifact,
        path: str | PathLike[str],
        vocabulary: Vocabulary,
        budget: Budget | None = None,
    ) -> CanonicalAutomaton:
        """The automaton of an artifact that was already read. Raises the errors of ``load``."""
        if found.encoding is None:
            raise ArtifactError(
                f"{path} has all token sequences, not only canonical ones: load it with TokenAutomaton.load(), or "
                'compile the constraint with tokenization="canonical"'
            )
        artifact.check_vocabulary(found, path, vocabulary)
        _check_encoding(path, found.encoding, vocabulary)
        automaton = TokenAutomaton.of_artifact(found, path, vocabulary, budget)
        try:
            return cls(automaton, automaton.budget, unchanged=True)
        except (TokenizationError, ConstraintError) as error:
            if vocabulary.encoding is not None and vocabulary.encoding.merges is not None:
                raise ArtifactVocabularyError(
                    f"{path} has canonical sequences, and those of this vocabulary's tokenizer are not known: {error}"
                ) from None
            raise artifact_format.corrupt(
                path, f"its canonical sequences cannot be computed: {error}"
            ) from None

    @renamed(max_tokens="max_new_tokens")
    @checked
    def matcher(self, max_new_tokens: int | None = None) -> CanonicalMatcher:
        """A matcher at the start state.

        With ``max_new_tokens``, masks allow only tokens after which the text can still be completed with the remaining
        tokens; raises ``TokenLimitError`` if no text is that short.
        """
        return CanonicalMatcher(self, max_new_tokens)

    def distance(self, node: Node) -> int:
        """The least number of canonical tokens, not counting the end token, that complete the text of a live node.

        Computed by iterative deepening, within the budget.
        """
        with self._call():
            return self._lengths.distance(node)

    def is_within(self, node: Node, max_new_tokens: int) -> bool:
        """Whether at most ``max_new_tokens`` canonical tokens complete the text."""
        with self._call():
            return self._lengths.is_within(node, max_new_tokens)

    def refusal(self, node: Node, max_new_tokens: int) -> TokenLimitError:
        """The error for a text that does not fit into ``max_new_tokens`` tokens."""
        return TokenLimitError(
            f"no accepted text fits into {counted(max_new_tokens, 'canonical token')}: the least number from here is "
            f"{self.distance(node)}"
        )

    def mask_within(self, node: Node, max_new_tokens: int) -> _Bits:
        """The mask of the tokens after which ``max_new_tokens - 1`` canonical tokens suffice: int32 (ceil(V / 32),).

        It also contains the end tokens if ``node`` is accepting and ``max_new_tokens`` is at least 1.
        """
        with self._call():
            return self._lengths.mask(node, max_new_tokens)

    @contextmanager
    def _call(self) -> Iterator[None]:
        """One external call: no other thread builds meanwhile, and all searches of the call share the budget's
        seconds.
        """
        with self._lock, self.tokenizer.lock:
            self.deadline = Deadline(self.budget, self._where)
            yield

    # --- nodes ----------------------------------------------------------------------------------------------------

    def advance(self, node: Node, token: int) -> Node | None:
        """The node after ``token``, or None if the sequence is not canonical or leaves the language. The node may be
        dead.
        """
        state = int(self.native.advance(node.state, token))
        with self.tokenizer.lock:
            joined = node.last == NO_TOKEN or self.tokenizer.may_precede(node.last, token)
            segmentation = self.tokenizer.segmentation
            cuts = segmentation.next(node.cuts if joined else segmentation.at_cut(node.cuts), token)
            return self.node(state, cuts, token) if state else None

    def step(self, node: Node, token: int) -> Node | None:
        """The live node after ``token``, or None if there is none."""
        following = self.advance(node, token)
        return following if following is not None and self.alive(following) else None

    def accepting(self, node: Node) -> bool:
        """Whether the text so far is in the language and its tokens are canonical."""
        return self.tokenizer.segmentation.accepting(node.cuts) and self.native.distance(node.state) == 0

    def alive(self, node: Node) -> bool:
        """Whether some canonical sequence of the language goes through ``node``."""
        with self._call():
            return self._way(node) != _NO_WAY

    def mask(self, node: Node) -> _Bits:
        """The allowed next tokens, including end tokens: int32 (ceil(V / 32),). Read-only."""
        with self._call():
            mask = self._mask(node.state, node.cuts)
            if node.last != NO_TOKEN:
                mask = mask & self.tokenizer.followers(node.last)
                begins = self.tokenizer.segmentation.at_cut(node.cuts)
                if begins != DEAD:
                    mask |= self._mask(node.state, begins)
            return mask | self.end_tokens if self.accepting(node) else mask

    def node(self, state: int, cuts: int, token: int) -> Node | None:
        """The node after ``token``, which led to ``state`` of the language and ``cuts`` of the segmentation; None if
        ``cuts`` is ``DEAD``.
        """
        if cuts == DEAD:
            return None
        return Node(state, cuts, token if self.tokenizer.segmentation.in_piece(cuts) != DEAD else NO_TOKEN)

    # --- masks ----------------------------------------------------------------------------------------------------

    def _mask(self, state: int, cuts: int) -> _Bits:
        """The tokens that continue the piece, if they may be adjacent to the last token."""
        known = self._masks.get((state, cuts))
        if known is None:
            allowed = np.zeros(self._words * 32, np.bool_)
            allowed[self._find_allowed(state, cuts)] = True
            known = np.packbits(allowed, bitorder="little").view(np.int32)
            known.setflags(write=False)
            if (len(self._masks) + 1) * known.nbytes > self.budget.bytes:
                self._masks.clear()
            self._masks[state, cuts] = known
        return known

    def _find_allowed(self, state: int, cuts: int) -> npt.NDArray[np.int64]:
        segmentation = self.tokenizer.segmentation
        tokens, targets = self.arcs_of(state)
        after = segmentation.after(cuts, tokens).astype(np.int64)
        tokens, targets, after = (part[after != DEAD] for part in (tokens, targets, after))
        groups, group_of = np.unique(targets << 32 | after, return_inverse=True)
        order = np.argsort(group_of, kind="stable")
        ends = np.cumsum(np.bincount(group_of, minlength=len(groups)))
        found = []
        for group, members in zip(groups.tolist(), np.split(tokens[order], ends[:-1]), strict=False):
            self.deadline.check()
            found.append(self._living(group >> 32, group & 0xFFFFFFFF, members))
        return np.concatenate([np.empty(0, np.int64), *found])

    def _living(self, state: int, cuts: int, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of ``tokens``, which all lead to the same two states, after which acceptance can be reached."""
        segmentation = self.tokenizer.segmentation
        begins, goes_on = segmentation.at_cut(cuts), segmentation.in_piece(cuts)
        if begins != DEAD and self._way(Node(state, begins, NO_TOKEN)) != _NO_WAY:
            return tokens
        if goes_on == DEAD:
            return tokens[:0]
        # Only tokens that may be adjacent to the last token remain.
        next_tokens, next_states = self.arcs_of(state)
        after = segmentation.after(goes_on, next_tokens)
        sensible = np.flatnonzero(after)
        living = np.zeros(len(tokens), np.bool_)
        if len(sensible) < len(tokens):
            for index in sensible.tolist():
                self.deadline.check()
                token = int(next_tokens[index])
                joined = self.tokenizer.predecessors(token)[tokens] & ~living
                if not joined.any():
                    continue
                node = self.node(int(next_states[index]), int(after[index]), token)
                if node is not None and self._way(node) != _NO_WAY:
                    living |= joined
                    if living.all():
                        break
            return tokens[living]
        settled = living.copy()
        for index in range(len(tokens)):
            if not settled[index]:
                self.deadline.check()
                way = self._way(Node(state, goes_on, int(tokens[index])))
                settled[index] = True
                if way != _NO_WAY:
                    living |= self.tokenizer.predecessors(way)[tokens]
                    living[index] = True
                    settled |= living
        return tokens[living]

    def cut_arcs_of(
        self, node: Node
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The arcs of a node's state as three arrays: tokens, target states, and the segmentation state after each
        token (``DEAD``, which is 0, if the token may not follow).
        """
        segmentation = self.tokenizer.segmentation
        tokens, targets = self.arcs_of(node.state)
        after = segmentation.after(node.cuts, tokens)
        if node.last != NO_TOKEN:
            bits = self.tokenizer.followers(node.last).view(np.uint8)
            joined = bits[tokens >> 3] >> (tokens & 7) & 1 != 0
            after = np.where(joined, after, segmentation.after(segmentation.at_cut(node.cuts), tokens))
        return tokens, targets, after

    def arcs_of(self, state: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The tokens that the language allows at ``state`` and their target states: two int64 arrays, nearest to
        acceptance first.
        """
        known = self._arcs.get(state)
        if known is not None:
            self._arcs.move_to_end(state)
            return known
        tokens, targets = (part.astype(np.int64) for part in self.native.arcs(state))
        distinct, which = np.unique(targets, return_inverse=True)
        distance = np.array([self._distance(target) for target in distinct.tolist()], np.int64)
        order = np.lexsort((tokens, distance[which]))
        known = self._arcs[state] = tokens[order], targets[order]
        self._arcs_held += 16 * len(tokens)
        while self._arcs_held > self.budget.bytes and len(self._arcs) > 1:
            self._arcs_held -= 16 * len(self._arcs.popitem(last=False)[1][0])
        return known

    def _distance(self, state: int) -> int:
        """The language's distance of a state. At worst this is a search of the core, with its own budget."""
        self.deadline.check()
        return self.native.distance(state)

    # --- the search -----------------------------------------------------------------------------------------------

    def _way(self, start: Node) -> int:
        """The first token of a path from ``start`` to acceptance, ``ENDS`` if it accepts, ``_NO_WAY`` if there is
        none.

        Depth first, nearest to the language's end first. A path that is found settles the nodes on it; a search
        that ends without one has visited everything that can be reached, and settles that.
        """
        known = self._known_way(start)
        if known is not None:
            return known
        if len(self._ways) > self.budget.states:
            self._ways.clear()
        seen = {start}
        path: list[tuple[Node, Iterator[tuple[int, Node]]]] = [(start, self.successors(start))]
        taken: list[int] = []
        while path:
            for token, node in path[-1][1]:
                if node in seen:
                    continue
                self.deadline.tick()
                way = self._known_way(node)
                if way == _NO_WAY:
                    continue
                taken.append(token)
                if way is not None:
                    for (passed, _), first in zip(path, taken, strict=True):
                        self._ways[passed] = first
                    return taken[0]
                seen.add(node)
                self.check(len(seen))
                path.append((node, self.successors(node)))
                break
            else:
                path.pop()
                if taken:
                    taken.pop()
        self._ways.update(dict.fromkeys(seen, _NO_WAY))
        return _NO_WAY

    def check(self, visited: int) -> None:
        """Raise ``BudgetExceeded`` for a search that has become too large, or a call that takes too long."""
        if visited > self.budget.states:
            raise BudgetExceeded("states", self.budget.states, self._where)
        self.deadline.check()

    def _known_way(self, node: Node) -> int | None:
        known = self._ways.get(node)
        if known is None and self.accepting(node):
            known = self._ways[node] = ENDS
        return known

    def successors(self, node: Node) -> Iterator[tuple[int, Node]]:
        """Each token that may follow canonically and its target node, nearest to acceptance in the language first."""
        tokens, targets, after = self.cut_arcs_of(node)
        found = np.flatnonzero(after)
        for part in (found[:_NEAREST], found[_NEAREST:]):  # usually one of the first ones is enough
            for index in part.tolist():
                token = int(tokens[index])
                following = self.node(int(targets[index]), int(after[index]), token)
                if following is not None:
                    yield token, following


def _check_encoding(path: object, theirs: BytePairEncoding, vocabulary: Vocabulary) -> None:
    """Raise ``ArtifactVocabularyError`` if a vocabulary's tokenizer makes other tokens of a text than an artifact's."""
    own = vocabulary.encoding
    if own is None:
        raise ArtifactVocabularyError(
            f"{path} has the token sequences that one tokenizer makes, and how that of {vocabulary!r} makes tokens of "
            "a text is not known. Load the vocabulary it was made with, or give Vocabulary(..., split_pattern=...)"
        )
    only = [dict(sorted(set(one.added) - set(two.added))) for one, two in ((theirs, own), (own, theirs))]
    for what, one, other in (
        ("splits texts by", theirs.split_pattern, own.split_pattern),
        ("has as its normal form", *("NFC" if each.is_nfc else "none" for each in (theirs, own))),
        ("finds, beside those of both, the added tokens", *only),
    ):
        if one != other:
            found, wanted = map(artifact_format.shown, (one, other))
            raise ArtifactVocabularyError(
                f"{path} was compiled for a tokenizer that {what} {found}, and this vocabulary's {what} {wanted}. "
                "Load the vocabulary it was made with, or compile it again"
            )
