r"""``Pattern``: a pattern parsed by the standard library, with its size and the source positions of its parts.

``re._parser`` alone defines the syntax. Its tree has no positions. They are computed only when an error or a label
needs one: one pass over the text lists the quantifiers and the look-around groups in source order, which is the order
in the tree (quantifiers after their operands), so the k-th of one is the k-th of the other. Rejected: a tokenizer that
records positions while the parser runs, which slows every pattern down for the few that fail.

Groups with reserved names (``reserved``) are hidden from the parser: each becomes ``(?P<g001>[\s\S]*)``, with a
distinct name, padded to the same length. So a name may occur twice, positions stay valid, and analyses of the group's
first characters or length see "anything".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from itertools import count
from typing import Any, NoReturn, TypeVar

from tokenfst.automata.characters.classes import TEXT
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.common.remedies import remedy
from tokenfst.errors import BudgetExceeded, ConstraintError, PatternSyntaxError, UnsupportedPatternError

_parser: Any = import_module("re._parser")
_constants: Any = import_module("re._constants")

_Place = TypeVar("_Place")
Tree = Any
"""A ``re._parser.SubPattern``; its ``data`` is a list of (operator, argument)."""

ANY, IN, LITERAL, NOT_LITERAL = _constants.ANY, _constants.IN, _constants.LITERAL, _constants.NOT_LITERAL
AT, BRANCH, FAILURE, SUBPATTERN = _constants.AT, _constants.BRANCH, _constants.FAILURE, _constants.SUBPATTERN
ASSERT, ASSERT_NOT = _constants.ASSERT, _constants.ASSERT_NOT
MAX_REPEAT, MIN_REPEAT = _constants.MAX_REPEAT, _constants.MIN_REPEAT
MAXREPEAT: int = _constants.MAXREPEAT
_QUANTIFIERS = (MAX_REPEAT, MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_RANGE = _constants.RANGE

# As plain ints: the operators of re.RegexFlag take microseconds.
_VERBOSE, _LOCALE, _DEBUG = int(re.VERBOSE), int(re.LOCALE), int(re.DEBUG)
_TYPE_FLAGS = int(re.ASCII | re.LOCALE | re.UNICODE)
_KNOWN_FLAGS = int(_TYPE_FLAGS | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE)
_LONG = 20_000
"""Patterns with more characters are parsed under a time limit; the parser takes about a microsecond for each."""
_ASCII = int(re.ASCII)
_READ_AS_BYTES = re.compile(rb"\\[uUN]|\(\?[a-zA-Z]*[aLu]")
"""Constructs that may have another meaning in bytes than in a str of the same letters: character escapes, type flags.
"""
_REFUSED = {
    "backreference": "a back-reference makes the language irregular; write out what the group may match",
    "conditional": "a conditional on a group is not supported; write its two cases as alternatives",
    "atomic": "an atomic group depends on the order of backtracking; use (?:...) instead of (?>...)",
    "possessive": "a possessive quantifier depends on the order of backtracking; leave the second + out",
    "locale": "the LOCALE flag depends on the machine; leave it out",
}
_PROPERTY = r"re has no classes of Unicode properties: [^\W\d_] is a letter, \d a digit"
_RECURSION = (
    "a pattern that holds itself is no regular language: lark_grammar(...) reads rules that call themselves"
)
_ELSEWHERE = {
    "\\p": _PROPERTY,
    "\\P": _PROPERTY,
    "?<": "re writes a named group (?P<name>...)",
    "?R": _RECURSION,
    "?&": _RECURSION,
    "?0": _RECURSION,
    "\\h": "re has no such class: [ \\t] is a space or a tab",
    "\\Q": "re has no quotations: re.escape(text) escapes a text",
    "\\K": "write what comes before as look-behind, (?<=...)",
    "\\x{": "re writes a character by 4 digits, \\u00e9, or by 8, \\U0001f600",
    "\\u{": "re writes a character by 4 digits, \\u00e9, or by 8, \\U0001f600",
}
"""Constructs of other dialects at which the parser stops, and what to write instead."""


@dataclass(frozen=True, slots=True)
class ReservedGroup:
    """A group that is hidden from the parser: its name, the start and end of its content in the text, and in ``bars``
    the positions of each top-level ``|``.
    """

    name: str
    begin: int
    end: int
    bars: tuple[int, ...]

    def parts(self) -> list[tuple[int, int]]:
        """The start and end of each part between the bars; empty content has no parts."""
        if self.begin == self.end:
            return []
        return list(zip((self.begin, *(bar + 1 for bar in self.bars)), (*self.bars, self.end), strict=True))


class _Watched(str):
    """A long text that looks at the clock while the parser reads it, a character at a time.

    The parser copies bytes before it reads them. So bytes are read as a str of the same letters, where that means the
    same.
    """

    deadline: Deadline

    def __getitem__(self, index: Any) -> str:
        self.deadline.tick()
        return str.__getitem__(self, index)


class Pattern:
    """A parsed pattern: its ``tree`` and global ``flags`` (with ``TEXT`` for a str), checked and measured.

    Raises PatternSyntaxError if ``re`` raises an error, UnsupportedPatternError for unsupported constructs,
    BudgetExceeded("positions") if the expanded counted repetitions exceed the budget, and BudgetExceeded("seconds") if
    parsing more than ``_LONG`` characters takes too long. (Patterns over bytes are parsed without a time limit if they
    have constructs of ``_READ_AS_BYTES`` or type flags.)
    """

    def __init__(
        self,
        text: str | bytes,
        flags: int,
        budget: Budget,
        *,
        any_width: bool = False,
        reserved: Collection[str] = (),
    ) -> None:
        """``any_width``: look-behind need not have a fixed width. ``reserved``: names of groups to hide from the
        parser; ``self.reserved`` has them by their numbers. They are for str patterns only.
        """
        if not isinstance(text, (str, bytes)):
            found = remedy("a pattern", text)
            raise ConstraintError(
                f"a pattern is a str or bytes, not {type(text).__name__}{found and f': {found}'}"
            )
        self.text, self.budget, self.any_width = text, budget, any_width
        flags = int(flags)
        self.verbose = bool(flags & _VERBOSE)
        self.asserting: dict[int, bool] = {}
        self._parsed, hidden = text, dict[str, ReservedGroup]()
        if reserved and (names := _mentioned(text, reserved)):
            self._parsed, hidden = _hide(text, self.verbose, names)
        try:
            self.tree: Tree = self._parse(flags & ~_DEBUG)
        except re.error as error:
            at = error.pos or 0
            found = text[at : at + 3] if isinstance(text, str) else text[at : at + 3].decode("latin-1")
            hints = [f"; {hint}" for other, hint in _ELSEWHERE.items() if found.startswith(other)]
            raise PatternSyntaxError("".join([error.msg, *hints]), text, at) from None
        except (OverflowError, ValueError) as error:
            raise PatternSyntaxError(str(error), text, self._oversized_quantifier()) from None
        self.flags = int(self.tree.state.flags) | (TEXT if isinstance(text, str) else 0)
        self.verbose = bool(self.flags & _VERBOSE)
        numbers = self.tree.state.groupdict
        self.reserved = {int(numbers[alias]): group for alias, group in hidden.items()}
        if self.flags & _LOCALE:
            self.refuse_first()
        if self.flags & ~(_KNOWN_FLAGS | TEXT):
            raise ConstraintError(
                f"flags={flags!r} holds a flag that has no meaning here; use those of re.compile"
            )
        if isinstance(text, str) and _MAYBE_SURROGATE.search(text):
            self._reject_surrogates(self.tree)
        if self._measure(self.tree)[0] > budget.positions:
            raise BudgetExceeded("positions", budget.positions, shorten(self._decoded))

    def _parse(self, flags: int) -> Tree:
        text = self._parsed
        as_bytes = isinstance(text, bytes) and (flags & _TYPE_FLAGS or _READ_AS_BYTES.search(text))
        if len(text) <= _LONG or as_bytes:
            return _parser.parse(text, flags)
        watched = _Watched(text if isinstance(text, str) else text.decode("latin-1"))
        watched.deadline = Deadline(self.budget, shorten(str(self.text)))
        if isinstance(text, str):
            return _parser.parse(watched, flags)
        tree: Tree = _parser.parse(watched, flags | _ASCII)
        tree.state.flags &= ~_ASCII
        return tree

    # --- size -----------------------------------------------------------------------------------------

    def _measure(self, tree: Tree) -> tuple[int, bool]:
        """The number of positions of ``tree`` with repetitions expanded, and whether it contains an assertion."""
        size, asserting = 0, False
        for op, argument in tree.data:
            if op is LITERAL or op is IN or op is ANY or op is NOT_LITERAL or op is FAILURE:
                size += 1
                continue
            if op is SUBPATTERN:
                if argument[1] & _LOCALE:
                    self.refuse_first()
                part, inner = self._measure(argument[3])
            elif op is MAX_REPEAT or op is MIN_REPEAT:
                low, high, body = argument
                part, inner = self._measure(body)
                part *= max(low, 1) if high is MAXREPEAT else high
                if part > self.budget.positions:
                    raise BudgetExceeded("positions", self.budget.positions, self.quantified(body))
            elif op is BRANCH:
                sizes, inners = zip(*map(self._measure, argument[1]), strict=True)
                part, inner = sum(sizes), any(inners)
            elif op is ASSERT or op is ASSERT_NOT:
                direction, body = argument
                part, inner = self._measure(body)[0], True
                if direction < 0 and not self.any_width and len(set(body.getwidth())) > 1:
                    self.refuse_assertion(
                        body, "look-behind requires fixed-width pattern", PatternSyntaxError
                    )
            elif op is AT:
                part, inner = 1, True
            else:
                self.refuse_first()
            size += part
            asserting |= inner
        self.asserting[id(tree)] = asserting
        return size, asserting

    # --- errors ---------------------------------------------------------------------------------------

    def refuse_first(self) -> NoReturn:
        """Raise for the first construct of the text that is not regular."""
        position, kind = min(self._scan.refused, default=(0, "locale"))
        raise UnsupportedPatternError(_REFUSED[kind], self.text, position)

    def refuse_assertion(self, body: Tree, message: str, kind: type = UnsupportedPatternError) -> NoReturn:
        """Raise for the look-around group whose content is ``body``."""
        looks = [argument for op, argument in _walk(self.tree) if op in (ASSERT, ASSERT_NOT, FAILURE)]
        places = _paired([id(argument[1]) if argument else 0 for argument in looks], self._scan.assertions)
        raise kind(message, self.text, places.get(id(body), 0))

    def quantified(self, body: Tree) -> str:
        """The source text of the repetition of ``body``, including the quantifier."""
        begin, end = self._spans.get(id(body), (0, 0))
        return shorten(self._decoded[begin:end])

    @cached_property
    def _spans(self) -> dict[int, tuple[int, int]]:
        bodies: list[int] = []
        _repeated(self.tree, bodies)
        return _paired(bodies, self._scan.quantified)

    def _reject_surrogates(self, tree: Tree) -> None:
        for op, argument in _walk(tree):
            items = argument if op is IN else ((op, argument),)
            for kind, value in items:
                codes = (value,) if kind in (LITERAL, NOT_LITERAL) else value if kind is _RANGE else ()
                for code in codes:
                    if 0xD800 <= code <= 0xDFFF:
                        raise PatternSyntaxError(
                            f"U+{code:04X} is a surrogate, which no UTF-8 text holds; leave it out",
                            self.text,
                            self._surrogate_position(code),
                        )

    def _surrogate_position(self, code: int) -> int:
        for match in re.finditer(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)|.", self._decoded, re.DOTALL):
            spelled = match[1] or match[2]
            if match[0] == chr(code) or (spelled and int(spelled, 16) == code):
                return match.start()
        return 0

    def _oversized_quantifier(self) -> int:
        return next(
            (begin for begin, digits in self._scan.numbers if len(digits) > 10 or int(digits) >= MAXREPEAT), 0
        )

    @property
    def _decoded(self) -> str:
        return _decode(self.text)

    @cached_property
    def _scan(self) -> _Scan:
        return _Scan(_decode(self._parsed), self.verbose)


def _mentioned(text: str | bytes, names: Collection[str]) -> set[str]:
    """The names that ``text`` may give to a group, by a quick search that also finds them in comments and classes.

    Raises UnsupportedPatternError for bytes.
    """
    shown = _decode(text)
    if "(?P<" not in shown:
        return set()
    mention = re.compile(r"\(\?P<(" + "|".join(names) + ")>")
    found = set(mention.findall(shown))
    if found and isinstance(text, bytes):
        position = mention.search(shown).start()  # type: ignore[union-attr]  # it was found
        message = f"{min(found)} describes text, and this pattern is about bytes; use a str pattern"
        raise UnsupportedPatternError(message, text, position)
    return found


def _hide(text: str | bytes, verbose: bool, names: set[str]) -> tuple[str, dict[str, ReservedGroup]]:
    """``text`` with every outermost group of these names replaced, and the groups by their new names."""
    shown = _decode(text)
    verbose = verbose or re.match(r"\(\?[aiLmsu]*x", shown) is not None
    pieces: list[str] = []
    hidden: dict[str, ReservedGroup] = {}
    at = 0
    for begin, end, bars in sorted(_Scan(shown, verbose).named):
        inside = shown.index(">", begin) + 1
        name = shown[begin + 4 : inside - 1]
        if begin < at or name not in names:
            continue
        content = _ANYTHING if end - begin > len(f"(?P<g0>{_ANYTHING})") else ""
        width = end - begin - len(f"(?P<g>{content})")
        aliases = (f"g{number:0{width}d}" for number in count(len(hidden)))
        alias = next(alias for alias in aliases if alias not in shown and alias not in hidden)
        hidden[alias] = ReservedGroup(name, inside, end - 1, tuple(bars))
        pieces += (shown[at:begin], f"(?P<{alias}>{content})")
        at = end
    return "".join((*pieces, shown[at:])), hidden


_ANYTHING = r"[\s\S]*"


def deepest_group(text: str | bytes) -> int:
    """The position at which the innermost group of ``text`` opens, whether or not the parser can read it."""
    return _Scan(_decode(text), verbose=False).deepest


def combine_flags(flags: int, added: int, removed: int) -> int:
    """The flags inside ``(?added-removed:...)``."""
    if added & _TYPE_FLAGS:
        flags &= ~_TYPE_FLAGS
    return (flags | added) & ~removed


def _paired(nodes: list[int], places: list[_Place]) -> dict[int, _Place]:
    """The position of each node; empty if a parser of another release has omitted a node, so that no position is
    wrong.
    """
    return dict(zip(nodes, places, strict=True)) if len(nodes) == len(places) else {}


def _decode(text: str | bytes) -> str:
    return text if isinstance(text, str) else text.decode("latin-1")


def shorten(text: str) -> str:
    """``text``; if it is long, only its two ends."""
    return text if len(text) <= 80 else f"{text[:50]}...{text[-27:]}"


def _walk(tree: Tree) -> Iterator[tuple[Any, Any]]:
    """Every node in the order of the text: repetitions after their bodies, all others before their contents."""
    for op, argument in tree.data:
        if op in _QUANTIFIERS:
            yield from _walk(argument[2])
            yield op, argument
            continue
        yield op, argument
        if op is SUBPATTERN:
            yield from _walk(argument[3])
        elif op is BRANCH:
            for each in argument[1]:
                yield from _walk(each)
        elif op is ASSERT or op is ASSERT_NOT:
            yield from _walk(argument[1])
        elif op is _constants.ATOMIC_GROUP:
            yield from _walk(argument)
        elif op is _constants.GROUPREF_EXISTS:
            for each in argument[1:]:
                if each is not None:
                    yield from _walk(each)


def _repeated(tree: Tree, found: list[int]) -> None:
    """Append the ids of what is repeated, in the order of ``_walk``, without a generator for each node."""
    for op, argument in tree.data:
        if op is LITERAL or op is IN:
            continue
        if op in _QUANTIFIERS:
            _repeated(argument[2], found)
            found.append(id(argument[2]))
        elif op is SUBPATTERN:
            _repeated(argument[3], found)
        elif op is BRANCH:
            for each in argument[1]:
                _repeated(each, found)
        elif op is ASSERT or op is ASSERT_NOT:
            _repeated(argument[1], found)
        elif op is _constants.ATOMIC_GROUP:
            _repeated(argument, found)
        elif op is _constants.GROUPREF_EXISTS:
            for each in argument[1:]:
                if each is not None:
                    _repeated(each, found)


_MAYBE_SURROGATE = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]|\\U0000[dD][89a-fA-F]")
_BLANK = re.compile(r"[ \t\n\r\v\f]+|#[^\n]*\n?")
_TOKENS = r"""
      (?P<character> \\ (?: 0[0-7]{0,2} | [1-7][0-7]{2} ) )
    | (?P<backreference> \\[1-9][0-9]? | \(\?P=[^)]*\) )
    | (?P<escape> \\ (?: x[0-9a-fA-F]{2} | u[0-9a-fA-F]{4} | U[0-9a-fA-F]{8} | N\{[^}]*\} | . ) )
    | (?P<set> \[ \^? \]? (?: [^\]\\] | \\. )* \] )
    | (?P<comment> \(\?\# [^)]* \) | \(\? [aiLmstux]+ \) )
    | (?P<conditional> \(\?\( [^)]* \) )
    | (?P<atomic> \(\?> )
    | (?P<assertion> \(\? <? [=!] )
    | (?P<flags> \(\? [aiLmstux]* (?: - [imsx]+ )? : )
    | (?P<group> \( (?: \?P< [^>]* > )? )
    | (?P<close> \) )
    | (?P<bar> \| )
    | (?P<quantifier> (?: [*+?] | \{ (?: [0-9]+ (?: ,[0-9]* )? | ,[0-9]* ) \} ) [+?]? )
    | (?P<other> . )
    """
_TOKEN = re.compile(_TOKENS, re.VERBOSE | re.DOTALL)
_RUN = re.compile(r"(?P<run> [^\\\[\](){}|*+?.^$]{2,} (?! [*+?{(] ) ) | " + _TOKENS, re.VERBOSE | re.DOTALL)
"""``_TOKEN``, and runs of plain characters of which none is repeated; for patterns that are not verbose."""
_OPENING = ("conditional", "atomic", "assertion", "flags", "group")


class _Scan:
    """The positions of constructs in the text of a pattern that the parser has accepted (or rejected at a later
    position).
    """

    def __init__(self, text: str, verbose: bool) -> None:  # noqa: C901  # one case a kind of token
        self.quantified: list[tuple[int, int]] = []
        """The start of the repeated part and the end of the quantifier, in the order of the quantifiers."""
        self.assertions: list[int] = []
        self.refused: list[tuple[int, str]] = []
        self.numbers: list[tuple[int, str]] = []
        """The positions of quantifiers, once for each number in them."""
        self.deepest = 0
        self.named: list[tuple[int, int, list[int]]] = []
        """The start and end of each named group, and the positions of bars in it that are not in a nested group."""
        opened: list[tuple[int, bool, list[int]]] = []
        depth = part = at = 0
        while at < len(text):
            if verbose and (blank := _BLANK.match(text, at)):
                at = blank.end()
                continue
            token = (_TOKEN if verbose else _RUN).match(text, at)
            if token is None:
                break
            kind, spelled, end = str(token.lastgroup), token[0], token.end()
            if kind == "quantifier":
                self.quantified.append((part, end))
                self.numbers += ((at, digits) for digits in re.findall("[0-9]+", spelled))
                if len(spelled) > 1 and spelled[-1] == "+":
                    self.refused.append((at, "possessive"))
            elif kind in _OPENING:
                opened.append((at, verbose, []))
                if len(opened) > depth:
                    depth, self.deepest = len(opened), at
                added, _, removed = spelled.partition("-") if kind == "flags" else ("", "", "")
                verbose = (verbose or "x" in added) and "x" not in removed
            elif kind == "close" and opened:
                part, verbose, bars = opened.pop()
                if text.startswith("(?P<", part):
                    self.named.append((part, end, bars))
            elif kind != "comment":
                part = at
            if kind == "bar" and opened:
                opened[-1][2].append(at)
            elif kind in ("backreference", "conditional", "atomic"):
                self.refused.append((at, kind))
            elif kind == "assertion":
                self.assertions.append(at)
            elif kind in ("comment", "flags") and not spelled.startswith("(?#") and "L" in spelled:
                self.refused.append((at, "locale"))
            at = end
