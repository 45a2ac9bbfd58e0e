"""``Code``: a character encoding, and the spellings of words, sets of words, and automata over characters in it.

A code spells each set of characters by one small automaton, created once in a process; a text is the concatenation of
its characters. So expressions of complete characters under concatenation, union and repetition are spelled leaf by
leaf, in one traversal (``Code.plain_images``); all others need the inverse image of ``spellings``.

Cost: linear in the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import takewhile
from operator import eq

import numpy as np

from tokenfst._native import word_tree
from tokenfst.automata.characters.codes import Form, spell
from tokenfst.automata.characters.utf8 import (
    MAX_CODE_POINT,
    Characters,
    Ranges,
    normalize,
    single_characters,
    without_surrogates,
)
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Dfa,
    Expr,
    Op,
    below,
    byte_set,
    concat,
    literal,
    machine,
    repeat,
    union,
)
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.expressions.tables import trim

ASCII_BYTES = (1 << 0x80) - 1
BETWEEN_LOOKS = 0xFF
"""Nodes between two checks of the clock, as a bit mask."""
_MOST_LETTERS = 4096
_FIRST_PRINTABLE, _LAST_PRINTABLE = 0x20, 0x7E
_CONCAT, _UNION = Op.CONCAT, Op.UNION


class Code:
    """A code for all characters.

    ``forms`` must cover every character, and the spellings of all characters must be a prefix code. ``write`` spells a
    text; give it if every character has exactly one spelling. Codes are compared by identity: create each once.
    """

    functional = True
    """Whether each spelling belongs to one text only. If not, images do not commute with intersection and
    complement.
    """

    def __init__(self, forms: Sequence[Form], write: Callable[[str], bytes] | None = None) -> None:
        self.forms = tuple(forms)
        self._write = write
        self._letters: dict[str, Expr] = {}
        """The letters of characters in words; at most ``_MOST_LETTERS`` are kept."""
        self._spelled_once = False
        """Whether some letter is a LITERAL."""

    @cached_property
    def any_character(self) -> Expr:
        """One character."""
        return self.character(((0, MAX_CODE_POINT),))

    @cached_property
    def any_text(self) -> Expr:
        """Any number of characters."""
        return repeat(self.any_character)

    def character(self, ranges: Ranges) -> Expr:
        """One character out of ``ranges``, surrogates excluded. The same object for equal ranges."""
        return _character(self, without_surrogates(ranges))

    def word(self, text: str) -> Expr:
        """All spellings of ``text``."""
        if self._write is not None:
            return literal(self._write(text)) if text else EPSILON
        known = self._letters.get
        letters = [known(each) or self._letter(each) for each in text]
        if not self._spelled_once:
            return concat(*letters)
        parts: list[Expr] = []
        for part in letters:
            if part.op is Op.MACHINE:
                parts.append(part)
                continue
            last = parts[-1].value if parts else None
            if isinstance(last, bytes) and isinstance(part.value, bytes):
                parts[-1] = literal(last + part.value)
            else:
                parts.append(part)
        return concat(*parts)

    def plain_bytes(self, ranges: Ranges) -> Expr | None:
        """The expression of a set of characters if each of them has exactly one spelling, a single byte; otherwise
        ``None``.

        Most sets in patterns are of this kind and need no automaton.
        """
        if self._write is None or ranges[-1][1] > _LAST_PRINTABLE or ranges[0][0] < _FIRST_PRINTABLE:
            return None
        text = "".join([chr(code) for low, high in ranges for code in range(low, high + 1)])
        if self._write(text) != (spelled := text.encode()):
            return None
        return literal(spelled) if len(spelled) == 1 else byte_set(sum(1 << byte for byte in spelled))

    def _letter(self, character: str) -> Expr:
        found = self.character(((ord(character), ord(character)),))
        if found.op is Op.LITERAL:
            self._spelled_once = True
        if len(self._letters) < _MOST_LETTERS:
            self._letters[character] = found
        return found

    def words(self, texts: Iterable[str], deadline: Deadline | None = None) -> Expr:
        """All spellings of all of ``texts``, as a prefix tree: a step inspects the branches of one node only."""
        if self._write is not None:
            spelled = [self._write(text) for text in texts]
            if deadline is not None:
                deadline.tick(sum(10 + len(word) for word in spelled))
            return word_tree(spelled)
        open_nodes: list[tuple[int, list[Expr]]] = [(0, [])]
        previous: str | None = None
        for text in (*sorted(set(texts)), None):
            if previous is not None:
                if deadline is not None:
                    deadline.tick(10 + len(previous))
                shared = sum(takewhile(bool, map(eq, previous, text or "")))
                branch, end = EPSILON, len(previous)
                while open_nodes[-1][0] > shared:
                    depth, branches = open_nodes.pop()
                    branch, end = union(*branches, concat(self.word(previous[depth:end]), branch)), depth
                if open_nodes[-1][0] < shared:
                    open_nodes.append((shared, []))
                open_nodes[-1][1].append(concat(self.word(previous[shared:end]), branch))
            previous = text
        return union(*open_nodes[0][1])

    def united(self, operands: Sequence[Expr], images: Sequence[Expr], deadline: Deadline) -> Expr:
        """All spellings of a union, given its operands and their images, with its words combined."""
        words = [decoded(each) for each in operands]
        texts = [word for word in words if word is not None]
        if len(texts) < 2:
            return union(*images)
        return union(
            self.words(texts, deadline),
            *(image for image, word in zip(images, words, strict=True) if word is None),
        )

    def plain_images(self, root: Expr, deadline: Deadline) -> dict[Expr, Expr]:
        """All spellings of the plain nodes (``Expr``) below ``root`` whose leaves are complete characters.

        Most patterns consist of such nodes: one traversal, and a table look-up for each set of characters.
        """
        found: dict[Expr, Expr] = {}
        for number, node in enumerate(below(root)):
            if not number & BETWEEN_LOOKS:
                deadline.check()
            if not node.size:
                continue
            if not node.args:
                leaf = _plain_leaf(self, node)
                if leaf is not None:
                    found[node] = leaf
                continue
            images = [found[each] for each in node.args if each in found]
            if len(images) < len(node.args):
                continue
            if node.op is _CONCAT:
                found[node] = concat(*images)
            elif node.op is _UNION:
                found[node] = self.united(node.args, images, deadline)
            else:
                found[node] = rebuilt(node, images)
        return found

    def automaton(self, read: Characters, deadline: Deadline, source: str | None = None) -> Expr:
        """All spellings of what an automaton over characters accepts."""
        with deadline.part() as budget:
            dfa = spell(read.steps, read.accepting, self.forms, budget.states, budget.seconds)
        dfa = dfa if read.whole else trim(dfa, deadline)
        return machine(dfa, source) if dfa.start else EMPTY


@lru_cache(maxsize=4096)
def _character(code: Code, ranges: Ranges) -> Expr:
    if not ranges:
        return EMPTY
    plain = code.plain_bytes(ranges)
    if plain is not None:
        return plain
    steps = tuple((low, high, 2) for low, high in ranges)
    dfa = spell((steps, ()), (False, True), code.forms)
    following = dfa.table[:, dfa.classes]
    if np.count_nonzero(following) == dfa.num_states - 2:
        return literal(_only_word(dfa))
    if dfa.num_states == 3:
        return byte_set(sum(1 << int(byte) for byte in np.flatnonzero(following[dfa.start])))
    return machine(dfa)


@lru_cache(maxsize=4096)
def _plain_leaf(code: Code, node: Expr) -> Expr | None:
    """The spellings of a leaf whose words are whole characters; otherwise ``None``. Front ends share leaves among
    many expressions.
    """
    text, value = decoded(node), node.value
    if text is not None:
        return code.word(text)
    if node.op is Op.BYTES and isinstance(value, int) and value <= ASCII_BYTES:
        return code.character(normalize((each, each) for each in range(0x80) if value >> each & 1))
    ranges = single_characters(value) if isinstance(value, Dfa) else None
    return None if ranges is None else code.character(ranges)


def _only_word(dfa: Dfa) -> bytes:
    """The word of an automaton, if it has only one."""
    word, state = bytearray(), dfa.start
    while not dfa.accepting[state]:
        following = dfa.table[state, dfa.classes]
        word.append(int(np.flatnonzero(following)[0]))
        state = int(following[word[-1]])
    return bytes(word)


def decoded(node: Expr) -> str | None:
    """The text of a node, if it is a single word of valid UTF-8."""
    if node.op is Op.EPSILON:
        return ""
    if node.op is not Op.LITERAL:
        return None
    assert isinstance(node.value, bytes)
    return text_of(node.value)


def text_of(word: bytes) -> str | None:
    """The text of a word, if it is valid UTF-8."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        return None
