"""Canonical tokenizations: of every text of a language, the one token sequence that the tokenizer itself makes of it.

``compile(language, vocabulary, tokenization="canonical")`` composes a token automaton with the automaton of what the
tokenizer emits. Models are trained on such sequences only; other spellings of a text are tokens they have never seen
together.

Idea. A token sequence is canonical exactly when the tokenizer's pattern cuts its text only between tokens and each two
neighbours within one piece stand beside each other in byte-pair encoding (``tokenizers/byte_pairs.py``). So a state is
the token automaton's state, the state of the segmentation (``tokenizers/segmentation.py``), and the last token, which
is forgotten where a piece surely ends. After it a token may follow where the language allows it, and either a piece
begins with it or the last token bears it: of each pair of the first two states two masks are kept, and

    mask = begins | (continues & followers(last token))

Invariant (convention 7, for canonical sequences): a token is allowed exactly where the tokens so far and it begin a
canonical sequence of the language. Constraint and tokenizer can block each other although both have a way on, so
whether some way leads to acceptance is searched for, nearest to the end first. Whole groups of tokens are settled by
one witness: whoever bears the witness's first token is alive. What a search does not find it has proved: it is
exhaustive.

Cost. Three passes over a mask where the masks are known, and 0.3 ms more for a last token that was not seen lately;
some ms to seconds for each new pair of states. Rejected: masks of what is allowed for one more step
(they lead into dead ends), and a product with one state a token (V times the states).
"""

from __future__ import annotations

import operator
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.decoding.bitmask import bitmask_from_ids
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    MaskBufferError,
    RollbackError,
    TerminatedError,
    TokenIdError,
)
from tokenfst.tokenizers.byte_pair_tokenizer import byte_pair_tokenizer
from tokenfst.tokenizers.segmentation import DEAD

if TYPE_CHECKING:
    from tokenfst.decoding.token_automaton import TokenAutomaton

_NO_TOKEN = -1
_NO_WAY, _ENDS = -1, -2
"""What is remembered of a dead node, and of an accepting one; of others, the first token of a way to acceptance."""

_NEAREST = 32


_Bits = npt.NDArray[np.int32]


class Node(NamedTuple):
    """A state of the composition: the language's, the segmentation's, and the last token (-1: it does not matter)."""

    state: int
    cuts: int
    last: int


class CanonicalAutomaton:
    """The canonical token sequences of a language. Made by ``compile``; shared by threads, one of which builds at a
    time.

    Raises ``TokenizationError`` where how the vocabulary's tokenizer works is not known or has no exact automaton here,
    ``ConstraintError`` for a grammar that needs a stack, ``EmptyLanguageError`` where no text of the language has a
    canonical sequence. Later calls raise ``BudgetExceeded`` where one search visits more than ``budget.states`` nodes
    or takes more than ``budget.seconds``; masks beyond ``budget.bytes``, and nodes beyond
    ``budget.states``, are forgotten and found again.
    """

    def __init__(self, automaton: TokenAutomaton, budget: Budget) -> None:
        self.vocabulary, self.source, self.budget = automaton.vocabulary, automaton.source, budget
        self._native = automaton._native
        if self._native.is_pushdown:
            raise ConstraintError(
                f"{self.source} needs a stack; canonical tokenizations are of regular languages. Compile its "
                "truncate(depth) instead"
            )
        if self._native.has_marks:
            raise ConstraintError(
                f"{self.source} has strings that must differ from each other (names of a JSON object, unique items), "
                'which no finite automaton remembers: make the schema with repeated_names="allow"'
            )
        self._tokenizer = tokenizer = byte_pair_tokenizer(self.vocabulary)
        self._lock = threading.RLock()
        self._words = (len(self.vocabulary) + 31) // 32
        self.end_tokens = bitmask_from_ids(self.vocabulary.eos_token_ids, len(self.vocabulary)).ravel()
        self._arcs: OrderedDict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = OrderedDict()
        self._arcs_held = 0
        self._masks: dict[tuple[int, int], _Bits] = {}
        self._ways: dict[Node, int] = {}
        self.start = Node(int(self._native.start), tokenizer.segmentation.start, _NO_TOKEN)
        if not self.alive(self.start):
            raise EmptyLanguageError(
                f"no string of {self.source} has a canonical token sequence. Texts that are not UTF-8, or hold code "
                "points that are not assigned, have none"
            )

    def __repr__(self) -> str:
        return f"<CanonicalAutomaton {self.source!r}: {len(self._masks)} masks>"

    def matcher(self, max_tokens: int | None = None) -> CanonicalMatcher:
        """A walk from the start. ``max_tokens`` must be None, or ``ConstraintError``: distances in canonical tokens are
        not known."""
        if max_tokens is not None:
            raise ConstraintError(
                f"canonical tokenizations of {self.source} have no token budget: leave max_tokens out, or compile with "
                'tokenization="all"'
            )
        return CanonicalMatcher(self)

    # --- nodes ----------------------------------------------------------------------------------------------------

    def advance(self, node: Node, token: int) -> Node | None:
        """The node after ``token``; None where the sequence is not canonical or leaves the language. It may be dead."""
        state = int(self._native.advance(node.state, token))
        with self._tokenizer.lock:
            borne = node.last == _NO_TOKEN or self._tokenizer.bears(node.last, token)
            segmentation = self._tokenizer.segmentation
            cuts = segmentation.next(node.cuts if borne else segmentation.at_cut(node.cuts), token)
            return self._node(state, cuts, token) if state else None

    def accepting(self, node: Node) -> bool:
        """Whether the text so far is in the language and its tokens are canonical."""
        return self._tokenizer.segmentation.accepting(node.cuts) and self._native.distance(node.state) == 0

    def alive(self, node: Node) -> bool:
        """Whether some canonical sequence of the language goes through ``node``."""
        with self._lock, self._tokenizer.lock:
            return self._way(node) != _NO_WAY

    def mask(self, node: Node) -> _Bits:
        """The tokens that may come next, end tokens among them: int32 (ceil(V / 32),). Not to be written to."""
        with self._lock, self._tokenizer.lock:
            mask = self._mask(node.state, node.cuts)
            if node.last != _NO_TOKEN:
                mask = mask & self._tokenizer.followers(node.last)
                begins = self._tokenizer.segmentation.at_cut(node.cuts)
                if begins != DEAD:
                    mask |= self._mask(node.state, begins)
            return mask | self.end_tokens if self.accepting(node) else mask

    def _node(self, state: int, cuts: int, token: int) -> Node | None:
        if cuts == DEAD:
            return None
        return Node(state, cuts, token if self._tokenizer.segmentation.in_piece(cuts) != DEAD else _NO_TOKEN)

    # --- masks ----------------------------------------------------------------------------------------------------

    def _mask(self, state: int, cuts: int) -> _Bits:
        """The tokens that lead on where the last token bears them."""
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
        segmentation = self._tokenizer.segmentation
        tokens, targets = self._arcs_of(state)
        after = segmentation.after(cuts, tokens).astype(np.int64)
        tokens, targets, after = (part[after != DEAD] for part in (tokens, targets, after))
        groups, group_of = np.unique(targets << 32 | after, return_inverse=True)
        order = np.argsort(group_of, kind="stable")
        ends = np.cumsum(np.bincount(group_of, minlength=len(groups)))
        found = []
        for group, members in zip(groups.tolist(), np.split(tokens[order], ends[:-1]), strict=False):
            found.append(self._living(group >> 32, group & 0xFFFFFFFF, members))
        return np.concatenate([np.empty(0, np.int64), *found])

    def _living(self, state: int, cuts: int, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Those of ``tokens``, which all lead to the same two states, that acceptance can be reached after."""
        segmentation = self._tokenizer.segmentation
        begins, goes_on = segmentation.at_cut(cuts), segmentation.in_piece(cuts)
        if begins != DEAD and self._way(Node(state, begins, _NO_TOKEN)) != _NO_WAY:
            return tokens
        if goes_on == DEAD:
            return tokens[:0]
        # Only what the last token bears is left.
        next_tokens, next_states = self._arcs_of(state)
        after = segmentation.after(goes_on, next_tokens)
        sensible = np.flatnonzero(after)
        living = np.zeros(len(tokens), np.bool_)
        if len(sensible) < len(tokens):
            for index in sensible.tolist():
                token = int(next_tokens[index])
                borne = self._tokenizer.predecessors(token)[tokens] & ~living
                if not borne.any():
                    continue
                node = self._node(int(next_states[index]), int(after[index]), token)
                if node is not None and self._way(node) != _NO_WAY:
                    living |= borne
                    if living.all():
                        break
            return tokens[living]
        settled = living.copy()
        for index in range(len(tokens)):
            if not settled[index]:
                way = self._way(Node(state, goes_on, int(tokens[index])))
                settled[index] = True
                if way != _NO_WAY:
                    living |= self._tokenizer.predecessors(way)[tokens]
                    living[index] = True
                    settled |= living
        return tokens[living]

    def _arcs_of(self, state: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The language's tokens and where they lead, nearest to acceptance first."""
        known = self._arcs.get(state)
        if known is not None:
            self._arcs.move_to_end(state)
            return known
        tokens, targets = (part.astype(np.int64) for part in self._native.arcs(state))
        distinct, which = np.unique(targets, return_inverse=True)
        distance = np.array([self._native.distance(target) for target in distinct.tolist()], np.int64)
        order = np.lexsort((tokens, distance[which]))
        known = self._arcs[state] = tokens[order], targets[order]
        self._arcs_held += 16 * len(tokens)
        while self._arcs_held > self.budget.bytes and len(self._arcs) > 1:
            self._arcs_held -= 16 * len(self._arcs.popitem(last=False)[1][0])
        return known

    # --- the search -----------------------------------------------------------------------------------------------

    def _way(self, start: Node) -> int:
        """The first token of a way from ``start`` to acceptance, ``_ENDS`` where it accepts, ``_NO_WAY`` if there is
        none.

        Depth first, nearest to the language's end first. A way found settles the nodes on it; a search that ends
        without one has seen all that can be reached, and settles that.
        """
        known = self._known_way(start)
        if known is not None:
            return known
        if len(self._ways) > self.budget.states:
            self._ways.clear()
        deadline = time.monotonic() + self.budget.seconds
        seen = {start}
        path: list[tuple[Node, Iterator[tuple[int, Node]]]] = [(start, self._successors(start))]
        taken: list[int] = []
        while path:
            for token, node in path[-1][1]:
                if node in seen:
                    continue
                way = self._known_way(node)
                if way == _NO_WAY:
                    continue
                taken.append(token)
                if way is not None:
                    for (passed, _), first in zip(path, taken, strict=True):
                        self._ways[passed] = first
                    return taken[0]
                seen.add(node)
                self._check(len(seen), deadline)
                path.append((node, self._successors(node)))
                break
            else:
                path.pop()
                if taken:
                    taken.pop()
        self._ways.update(dict.fromkeys(seen, _NO_WAY))
        return _NO_WAY

    def _check(self, visited: int, deadline: float) -> None:
        where = f"the search for canonical token sequences of {self.source}"
        if visited > self.budget.states:
            raise BudgetExceeded("states", self.budget.states, where)
        if time.monotonic() > deadline:
            raise BudgetExceeded("seconds", self.budget.seconds, where)

    def _known_way(self, node: Node) -> int | None:
        known = self._ways.get(node)
        if known is None and self.accepting(node):
            known = self._ways[node] = _ENDS
        return known

    def _successors(self, node: Node) -> Iterator[tuple[int, Node]]:
        segmentation = self._tokenizer.segmentation
        tokens, targets = self._arcs_of(node.state)
        after = segmentation.after(node.cuts, tokens)
        if node.last != _NO_TOKEN:
            bits = self._tokenizer.followers(node.last).view(np.uint8)
            borne = bits[tokens >> 3] >> (tokens & 7) & 1 != 0
            after = np.where(borne, after, segmentation.after(segmentation.at_cut(node.cuts), tokens))
        found = np.flatnonzero(after)
        for part in (found[:_NEAREST], found[_NEAREST:]):  # mostly one of the first will do
            for index in part.tolist():
                token = int(tokens[index])
                following = self._node(int(targets[index]), int(after[index]), token)
                if following is not None:
                    yield token, following


class CanonicalMatcher:
    """One decoding under a ``CanonicalAutomaton``; its methods mean what those of ``Matcher`` mean."""

    def __init__(self, automaton: CanonicalAutomaton) -> None:
        self.automaton = automaton
        self._nodes = [automaton.start]
        self._tokens: list[int] = []
        self._terminated = False

    @property
    def tokens(self) -> list[int]:
        """The tokens accepted so far."""
        return list(self._tokens)

    @property
    def num_tokens(self) -> int:
        """How many tokens were accepted so far."""
        return len(self._tokens)

    @property
    def max_tokens_left(self) -> None:
        """No token budget."""
        return None

    def is_accepting(self) -> bool:
        """Whether an end token is allowed."""
        return self.automaton.accepting(self._nodes[-1])

    def is_terminated(self) -> bool:
        """Whether an end token was accepted."""
        return self._terminated

    def accept_token(self, token_id: int) -> bool:
        """Go on by one token; False, and nothing changes, where it is not allowed. Raises ``TokenIdError`` and
        ``TerminatedError``."""
        token = self._checked(token_id)
        if self._terminated:
            raise TerminatedError(
                f"token {token} was offered after the end token; reset() or rollback() first"
            )
        return self._push(token)

    def accept_tokens(self, token_ids: Sequence[int]) -> bool:
        """Go on by all of the tokens, or by none."""
        accepted = self._push_all(token_ids)
        if accepted < len(token_ids):
            self.rollback(accepted)
        return accepted == len(token_ids)

    def validate_tokens(self, token_ids: Sequence[int]) -> int:
        """How many of the tokens would be accepted; the matcher stays where it is."""
        accepted = self._push_all(token_ids)
        self.rollback(accepted)
        return accepted

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """Write the mask into row ``index`` of an int32 array or CPU tensor ``(batch, ceil(V / 32))``; True."""
        automaton = self.automaton
        mask = automaton.end_tokens if self._terminated else automaton.mask(self._nodes[-1])
        rows = np.atleast_2d(np.asarray(bitmask))
        if rows.dtype != np.int32 or rows.shape[1] != len(mask) or not 0 <= index < len(rows):
            raise MaskBufferError(
                f"row {index} of {len(mask)} int32 words does not fit a bitmask of shape {rows.shape} and type "
                f"{rows.dtype}; make one by allocate_token_bitmask()"
            )
        rows[index] = mask
        return True

    def forced_tokens(self) -> list[int]:
        """The tokens that have no alternative, up to the next choice or the end."""
        forced: list[int] = []
        while not self._terminated:
            bits = np.unpackbits(self.automaton.mask(self._nodes[-1]).view(np.uint8), bitorder="little")
            only = np.flatnonzero(bits)
            if len(only) != 1 or int(only[0]) in self.automaton.vocabulary.eos_token_ids:
                break
            self._push(int(only[0]))
            forced.append(int(only[0]))
        self.rollback(len(forced))
        return forced

    def rollback(self, num_tokens: int = 1) -> None:
        """Take back the last tokens. Raises ``RollbackError``."""
        if not 0 <= num_tokens <= len(self._tokens):
            raise RollbackError(
                f"cannot roll back {num_tokens} tokens: only {len(self._tokens)} were accepted"
            )
        if num_tokens:
            del self._tokens[-num_tokens:]
            del self._nodes[len(self._tokens) + 1 :]
            self._terminated = False

    def reset(self) -> None:
        """Back to the start."""
        self.rollback(len(self._tokens))

    def fork(self) -> CanonicalMatcher:
        """Another matcher at the same place."""
        other = CanonicalMatcher(self.automaton)
        other._nodes, other._tokens = list(self._nodes), list(self._tokens)
        other._terminated = self._terminated
        return other

    def _push_all(self, token_ids: Sequence[int]) -> int:
        accepted = 0
        for token in [self._checked(token) for token in token_ids]:
            if self._terminated or not self._push(token):
                break
            accepted += 1
        return accepted

    def _push(self, token: int) -> bool:
        automaton, node = self.automaton, self._nodes[-1]
        if token in automaton.vocabulary.eos_token_ids:
            if not automaton.accepting(node):
                return False
            self._terminated = True
            following: Node | None = node
        else:
            following = automaton.advance(node, token)
            if following is None or not automaton.alive(following):
                return False
        assert following is not None
        self._nodes.append(following)
        self._tokens.append(token)
        return True

    def _checked(self, token_id: int) -> int:
        token, size = operator.index(token_id), len(self.automaton.vocabulary)
        if not 0 <= token < size:
            raise TokenIdError(f"token id {token} lies outside the vocabulary of {size} tokens")
        return token
