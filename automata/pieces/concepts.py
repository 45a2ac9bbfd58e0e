r"""Concepts in text: words and phrases as symbols, and the texts whose symbol sequence an automaton accepts.

A transducer reads text and writes the name of a concept where one of its forms ends (Aho and Corasick, "Efficient
string matching", CACM 1975). Its state is the longest suffix of the text that is a prefix of a form *and starts where a
form may start*. Failure links lead to the next shorter such suffix. With ``boundaries``, a form that begins with a word
character matches only if no word character precedes it, and a form that ends with one only if none follows. The next
character decides the latter, so the symbol of such a form is written when the next character, or the end of the text,
has been read.

``language(a)`` is the composition with an automaton over symbols: a deterministic automaton over bytes whose states are
pairs. The states record how much of a form has been read, so distances in tokens are exact. ``contains_all`` is an
intersection of one small automaton for each concept, with states built on demand.

Invariant: symbols are written in the order in which forms end. If several end at the same position, the longest comes
first, and each concept is written once. Word characters are those of Python's ``\w``. Characters beyond ASCII are read
through one classifier, which all states with the same continuations share.

Cost of ``language``: the states of the transducer times those of the automaton, plus a few hundred states of the
classifier for each different continuation. Rejected: forms as regular expressions with look-around, which express which
texts contain a concept but not in which order several occur; the bookkeeping of Appendix B in the ABS paper, which does
not track partly read forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.distinct import distinct_rows
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.tables import trim
from tokenfst.automata.languages.language import Language
from tokenfst.automata.pieces.classifier import Classifier, classifier, word_characters
from tokenfst.automata.pieces.inflection import english_inflections
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but, refuse
from tokenfst.common.plurals import counted
from tokenfst.errors import BudgetExceeded, ConstraintError, LabelError

Ints = npt.NDArray[np.int64]
Forms = Mapping[str, Iterable[str]] | Iterable[str]
"""The forms of each concept, by the concept's name; or words, each of which is a concept with itself as its only form.
"""

_NONWORD, _WORD = 0, 1
_TRANSDUCER = "the transducer of concepts"
_PRODUCT = "concepts composed with an automaton over them"
_PAIRS = 1 << 18
"""The number of product entries that are computed between two checks of the clock."""


class SymbolTables(Protocol):
    """A deterministic automaton over symbols.

    ``table`` has the shape (states, symbols + 1), and its last column is for all other symbols. State 0 is DEAD.
    """

    @property
    def symbols(self) -> Sequence[str]:
        """The names of the symbols, in the order of the table's columns."""

    @property
    def table(self) -> npt.NDArray[Any]:
        """The next state for each state and symbol, of shape (states, symbols + 1)."""

    @property
    def accepting(self) -> npt.NDArray[np.bool_]:
        """For each state, whether it accepts."""

    @property
    def start(self) -> int:
        """The start state."""


class Concepts:
    """A transducer from text to the names of concepts; the function ``concepts`` makes it. Immutable."""

    @checked
    def __init__(
        self,
        forms: Mapping[str, Sequence[str]],
        boundaries: bool,
        ignore_case: bool,
        deadline: Deadline | None = None,
    ) -> None:
        self.forms = {name: tuple(each) for name, each in forms.items()}
        self.names = tuple(self.forms)
        self.boundaries = boundaries
        self.ignore_case = ignore_case
        self._classes = _Classes((form for each in self.forms.values() for form in each), ignore_case)
        self._build(deadline or Deadline(Budget(), _TRANSDUCER))

    def __repr__(self) -> str:
        return f"<Concepts {', '.join(self.names)}: {counted(len(self._next), 'state')}>"

    @checked
    def symbols(self, text: str) -> list[str]:
        """The names of the concepts in a text, in the order in which their forms end. Linear time."""
        state, found = 0, list[int]()
        for character in text:
            read = self._classes.of(character)
            found += self._outputs[self._written[state, read]]
            state = int(self._next[state, read])
        return [self.names[number] for number in (*found, *self._outputs[self._at_end[state]])]

    @checked
    def language(self, automaton: SymbolTables, budget: Budget | None = None) -> Language:
        """The texts (valid UTF-8) whose sequence of concepts ``automaton`` accepts.

        A concept that the automaton does not name counts as any other symbol (the last column). Text that is not part
        of a concept writes no symbol. Raises ``BudgetExceeded`` if the product has more states or bytes than
        ``budget``.
        """
        return self.product(automaton, Deadline(budget or Budget(), _PRODUCT))

    def product(self, automaton: SymbolTables, deadline: Deadline) -> Language:
        """``language``, within the deadline of a caller that has several steps."""
        others = len(automaton.symbols)
        columns = {name: number for number, name in enumerate(automaton.symbols)}
        steps = np.asarray(automaton.table, np.int64)
        after = []
        for output in self._outputs:
            deadline.tick(10 + len(output) * (1 + len(steps) // 100))
            states = np.arange(len(steps))
            for number in output:
                states = steps[states, columns.get(self.names[number], others)]
            after.append(states)
        dfa = _composed(
            self._next, self._written, self._at_end, np.stack(after), automaton, self._classes, deadline
        )
        source = (
            f"concepts {', '.join(self.names)} as {getattr(automaton, 'source', 'an automaton')} has them"
        )
        trimmed = trim(dfa, deadline)
        expr = expression.machine(trimmed) if trimmed.start else expression.EMPTY
        return Language(expr, source, deadline.budget)

    # --- the transducer -----------------------------------------------------------------------------------

    def _trie(
        self, deadline: Deadline
    ) -> tuple[list[dict[int, int]], list[tuple[int, int, int]], dict[int, int]]:
        """The forms as a trie: each node's children by class, all arcs (parent, class, node), and the concept whose
        form ends at a node.
        """
        read = self._classes.read
        children: list[dict[int, int]] = [{}, {}]
        arcs: list[tuple[int, int, int]] = []
        ends: dict[int, int] = {}
        for number, forms in enumerate(self.forms.values()):
            for form in forms:
                deadline.tick(len(form))
                node = 0
                for character in form:
                    step = read(character)
                    if step not in children[node]:
                        children[node][step] = len(children)
                        arcs.append((node, step, len(children)))
                        children.append({})
                    node = children[node][step]
                if ends.setdefault(node, number) != number:
                    both = f"{self.names[ends[node]]!r} and {self.names[number]!r}"
                    raise LabelError(
                        form, f"the form {form!r} belongs to two concepts, {both}: give it to one"
                    )
        return children, arcs, ends

    def _build(self, deadline: Deadline) -> None:
        """Compute ``_next`` and ``_written`` (states, classes) and ``_at_end`` (states,); the latter two are
        numbers of outputs.

        States 0 and 1 have read no part of a form: 0 if no word character precedes, 1 after a word character.
        """
        is_word = self._classes.is_word.tolist()
        children, arcs, ends = self._trie(deadline)
        width = len(is_word)
        if 16 * len(children) * width > deadline.budget.bytes:
            raise BudgetExceeded("bytes", deadline.budget.bytes, deadline.where)
        follow = np.zeros((len(children), width), np.int64)
        follow[:2] = np.where(is_word, 1, 0)
        for step, child in children[0].items():
            follow[0, step] = child
            if not (self.boundaries and is_word[step]):
                follow[1, step] = child
        waiting: list[tuple[int, ...]] = [(), ()]  # written if no word character follows
        at_once: list[tuple[int, ...]] = [(), ()]
        waiting += [()] * len(arcs)
        at_once += [()] * len(arcs)
        depth = [0] * len(children)
        for parent, _, node in arcs:
            depth[node] = depth[parent] + 1
        failure = [0] * len(children)
        for parent, step, node in sorted(arcs, key=lambda arc: depth[arc[2]]):
            deadline.tick(6)
            failure[node] = (int(is_word[step])) if parent == 0 else int(follow[failure[parent], step])
            follow[node] = follow[failure[node]]
            for onward, child in children[node].items():
                follow[node, onward] = child
            own = (ends[node],) if node in ends else ()
            waits = self.boundaries and bool(is_word[step])
            waiting[node] = _joined(own if waits else (), waiting[failure[node]])
            at_once[node] = _joined(() if waits else own, at_once[failure[node]])
        outputs: dict[tuple[int, ...], int] = {(): 0}
        written = np.zeros_like(follow)
        for node, row in enumerate(follow.tolist()):
            deadline.tick(width)
            for step, target in enumerate(row):
                before = () if is_word[step] else waiting[node]
                output = before + at_once[target]
                if output:
                    written[node, step] = outputs.setdefault(output, len(outputs))
        self._next, self._written = follow, written
        self._at_end = np.array([outputs.setdefault(each, len(outputs)) for each in waiting])
        self._outputs = tuple(outputs)


def _joined(own: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...]:
    return own + tuple(number for number in others if number not in own)


class _Classes:
    """Classes of characters in the transducer: other non-word and word characters, and each letter of a form."""

    def __init__(self, forms: Iterable[str], ignore_case: bool) -> None:
        words = word_characters()
        self._by_character: dict[str, int] = {}
        self._words = words
        is_word = [False, True]
        for character in sorted(set("".join(forms))):
            if character in self._by_character:
                continue
            for variant in _variants(character) if ignore_case else {character}:
                self._by_character[variant] = len(is_word)
            is_word.append(bool(words[ord(character)]))
        self.is_word = np.array(is_word)

    def read(self, character: str) -> int:
        """The class of a letter of a form."""
        return self._by_character[character]

    def of(self, character: str) -> int:
        """The class of any character."""
        known = self._by_character.get(character)
        return known if known is not None else _WORD if self._words[ord(character)] else _NONWORD

    def ascii(self) -> Ints:
        """The classes of the ASCII characters."""
        return np.array([self.of(chr(code)) for code in range(128)])

    def beyond_ascii(self) -> Classifier:
        """The classifier from the bytes of all other characters to their classes."""
        return classifier(tuple((c, n) for c, n in self._by_character.items() if ord(c) >= 128))


def _variants(character: str) -> set[str]:
    """The characters that are a character's upper, lower or title case, or of which it is one."""
    found, pending = {character}, [character]
    while pending:
        each = pending.pop()
        for other in (each.lower(), each.upper(), each.title(), each.casefold()):
            if len(other) == 1 and other not in found:
                found.add(other)
                pending.append(other)
    return found


def _composed(
    follow: Ints,
    written: Ints,
    at_end: Ints,
    after: Ints,
    automaton: SymbolTables,
    classes: _Classes,
    deadline: Deadline,
) -> Dfa:
    """The product as a byte automaton, not trimmed. ``after[output, state]`` is the automaton's state after an
    output.

    The states are, in this order: DEAD; pairs (transducer, automaton); then the inner states of the classifier, for
    each set of continuations of pairs after a character beyond ASCII. Nodes with equal continuations after such
    characters share them.
    """
    budget = deadline.budget
    nodes, states = len(follow), after.shape[1]

    def targets(next_nodes: Ints, outputs: Ints) -> Ints:
        """The target pairs of nodes (rows) with each state by classes (columns)."""
        moved = after[outputs]  # (nodes, classes, states)
        found = np.where(moved == 0, 0, 1 + next_nodes[:, :, None] * states + moved)
        return np.moveaxis(found, 2, 1)  # (nodes, states, classes)

    def refuse(resource: Literal["states", "bytes"]) -> BudgetExceeded:
        return BudgetExceeded(resource, getattr(budget, resource), deadline.where)

    if nodes * states > budget.states:
        raise refuse("states")
    ascii_classes, ascii_of = np.unique(classes.ascii(), return_inverse=True)
    inner = classes.beyond_ascii()
    others = len(inner.outcomes)

    def continuations(part: slice) -> Ints:
        return np.concatenate([follow[part][:, inner.outcomes], written[part][:, inner.outcomes]], axis=1)

    alike, _, group = distinct_rows(continuations, nodes, 2 * others, deadline)
    if 8 * len(alike) * states * others > budget.bytes:
        raise refuse("bytes")

    def pairs_after(part: slice) -> Ints:
        node, state = np.divmod(np.arange(part.start, min(part.stop, len(alike) * states)), states)
        moved = after[alike[node, others:], state[:, None]]
        return np.where(moved == 0, 0, 1 + alike[node, :others] * states + moved)

    ways, _, way = distinct_rows(pairs_after, len(alike) * states, others, deadline)
    count, letters = len(inner.table), len(ascii_classes)
    width = letters + inner.table.shape[1]
    total = 1 + nodes * states + len(ways) * count
    if total > budget.states:
        raise refuse("states")
    if 4 * total * width > budget.bytes:
        raise refuse("bytes")
    first = 1 + nodes * states + np.arange(len(ways)) * count
    ended = np.concatenate(
        [ways, np.zeros((len(ways), 1), np.int64)], axis=1
    )  # by outcome; the last one is no character
    inside = np.where(
        inner.table >= 0, first[:, None, None] + inner.table, ended[:, -1 - np.minimum(inner.table, -1)]
    )
    table = np.zeros((total, width), np.uint32)
    pairs = table[1 : 1 + nodes * states].reshape(nodes, states, width)
    way = way.reshape(len(alike), states)
    size = max(1, _PAIRS // (states * width))
    for begin in range(0, nodes, size):
        deadline.check()
        part = slice(begin, begin + size)
        pairs[part, :, :letters] = targets(follow[part][:, ascii_classes], written[part][:, ascii_classes])
        pairs[part, :, letters:] = inside[way[group[part]], 0]
    table[1 + nodes * states :, letters:] = inside.reshape(len(ways) * count, -1)
    accepting = np.zeros(total, np.bool_)
    accepting[1 : 1 + nodes * states] = np.asarray(automaton.accepting)[after[at_end]].ravel()
    byte_classes = np.concatenate([ascii_of.ravel(), letters + inner.classes]).astype(np.uint8)
    start = 0 if automaton.start == 0 else 1 + automaton.start
    deadline.check()
    return Dfa(byte_classes, table, accepting, start)


# --- what users call ----------------------------------------------------------------------------------


@checked_but("forms")
def concepts(
    forms: Forms,
    *,
    boundaries: bool = True,
    ignore_case: bool = False,
    inflections: Callable[[str], Iterable[str]] | bool = False,
    budget: Budget | None = None,
) -> Concepts:
    """The transducer of concepts given by their forms: ``concepts({"dog": ["dog", "dogs"], "cat": ["cat"]})``.

    ``boundaries``: whether forms are whole words (``cat`` does not match in ``category``). ``ignore_case``: whether a
    letter matches its upper, lower and title case. ``inflections``: a function whose results are added to each form;
    True adds the English inflections of lemminflect (extra ``concepts``). Raises LabelError for a form that is empty,
    not valid UTF-8, or in two concepts; ConstraintError if there are no concepts; MissingDependencyError without
    lemminflect; BudgetExceeded.
    """
    return _concepts(forms, Deadline(budget or Budget(), _TRANSDUCER), boundaries, ignore_case, inflections)


def _concepts(
    forms: Forms,
    deadline: Deadline,
    boundaries: bool = True,
    ignore_case: bool = False,
    inflections: Callable[[str], Iterable[str]] | bool = False,
) -> Concepts:
    inflected = english_inflections if inflections is True else inflections or (lambda form: ())
    if isinstance(forms, str):
        raise ConstraintError("concepts must be a mapping of names to forms, or several words, not one text")
    if not isinstance(forms, Iterable):
        refuse("concepts", "forms", forms, "a mapping of names to forms, or several words")
    given = forms if isinstance(forms, Mapping) else {word: (word,) for word in forms}
    if not given:
        raise ConstraintError("there are no concepts")
    made: dict[str, tuple[str, ...]] = {}
    for name, each in given.items():
        deadline.check()
        own = (each,) if isinstance(each, str) else tuple(each)
        if not own:
            raise LabelError(name, f"the concept {name!r} has no forms")
        _check_forms(name, own)
        more = [form for base in own for form in inflected(base)]
        _check_forms(name, more)
        made[name] = tuple(dict.fromkeys([*own, *more]))
    return Concepts(made, boundaries, ignore_case, deadline)


def _check_forms(name: str, forms: Iterable[object]) -> None:
    """Raise ``LabelError`` for a form that is not a text."""
    for form in forms:
        if not isinstance(form, str) or not form:
            raise LabelError(name, f"a form of the concept {name!r} is empty or no text: {form!r}")
        if any(0xD800 <= ord(character) <= 0xDFFF for character in form):
            raise LabelError(form, f"the form {form!r} contains a lone surrogate, which UTF-8 cannot encode")


class _Chain:
    """Symbols in sequence, with anything in between: state k has seen k - 1 of them."""

    def __init__(self, symbols: Sequence[str], order: Sequence[str]) -> None:
        self.symbols, self.start = symbols, 1
        columns = {symbol: column for column, symbol in enumerate(symbols)}
        states = np.arange(len(order) + 2)
        self.table = np.repeat(states[:, None], len(symbols) + 1, axis=1)
        for seen, symbol in enumerate(order):
            self.table[seen + 1, columns[symbol]] = seen + 2
        self.accepting = states == len(order) + 1


@checked
def contains_in_order(forms: Forms, *, budget: Budget | None = None, **options: Any) -> Language:
    r"""The texts that contain all concepts in the given order, with any text before, between and after them.

    ``options`` are those of ``concepts``. The texts of ``contains_in_order(["coffee", "cat"]) & regex(r".*\.")`` also
    end with a dot.
    """
    deadline = Deadline(budget or Budget(), _PRODUCT)
    found = _concepts(forms, deadline, **options)
    language = found.product(_Chain(found.names, found.names), deadline)
    return Language(language.expr, f"contains_in_order({', '.join(found.names)})", budget)


@checked
def contains_all(forms: Forms, *, budget: Budget | None = None, **options: Any) -> Language:
    """The texts that contain each concept at least once, in any order. ``options`` are those of ``concepts``.

    The result is an intersection of small automata. A search through sets of concepts finds which of its states are
    live. It is practical for up to about six concepts; with more, expect ``BudgetExceeded``.
    """
    deadline = Deadline(budget or Budget(), _PRODUCT)
    found = _concepts(forms, deadline, **options)
    each = [
        Concepts({name: found.forms[name]}, found.boundaries, found.ignore_case, deadline).product(
            _Chain((name,), (name,)), deadline
        )
        for name in found.names
    ]
    expr = expression.intersect(*(language.expr for language in each))
    return Language(expr, f"contains_all({', '.join(found.names)})", budget)


@checked
def avoids(forms: Forms, *, budget: Budget | None = None, **options: Any) -> Language:
    """The texts that contain none of the concepts. ``options`` are those of ``concepts``."""
    deadline = Deadline(budget or Budget(), _PRODUCT)
    found = _concepts(forms, deadline, **options)
    none = _Chain(found.names, ())
    none.table[1, :-1] = 0
    language = found.product(none, deadline)
    return Language(language.expr, f"avoids({', '.join(found.names)})", budget)
