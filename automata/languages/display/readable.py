r"""Expressions and character classes as readable text, for labels and messages.

The notation is that of Python's regular expressions, with ``&`` and ``~``, and words that ignore case as ``"and"i``.
Character classes are recovered from their UTF-8 automata. The text is for display only: it is cut in the middle (``…``)
if it gets long, and look-around is only indicated.

Invariant: the text of a node is bounded, so that shared nodes cannot multiply. Linear in the nodes, without recursion.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokenfst._native import Lexicon
from tokenfst.automata.characters.utf8 import SURROGATES, Ranges, negate, normalize, single_characters
from tokenfst.automata.expressions.expression import ALL_BYTES, Dfa, Expr, Op, TokenBound, Unordered
from tokenfst.automata.languages.display.drawing import bytes_label
from tokenfst.common.plurals import counted
from tokenfst.common.printable import printable

_SHOWN_RANGES = 12
_ESCAPED_IN_CLASS = frozenset("\\[]^-")
_ESCAPED = frozenset("\\()[]{}|*+?.&~")
_LETTER_CASES = 4
"""Maximum number of forms of one letter: s, S, and the long s; k, K, and the Kelvin sign."""
_LEADS = ((0x00, 0x80, 0), (0xC0, 0xE0, 1), (0xE0, 0xF0, 2), (0xF0, 0xF8, 3))
"""Ranges of UTF-8 first bytes, and the number of bytes that follow."""
_UNION, _CONCAT, _REPEAT, _ATOM = range(4)


@dataclass(frozen=True, slots=True)
class _Text:
    """``binding``: the contexts in which the text needs no brackets.

    ``word``: its spelling if case is ignored, and ``cased`` whether that makes a difference; None: it is not a
    word.
    """

    shown: str
    binding: int = _ATOM
    word: str | None = None
    cased: bool = False


def readable(expr: Expr, limit: int = 60) -> str:
    """The expression as text of at most about ``limit`` characters."""
    texts: dict[int, _Text] = {}
    for node in expr.walk():
        args = [texts.get(id(arg), _Text("…")) for arg in node.args]
        found = _text(node, args, limit)
        texts[id(node)] = _Text(shorten(found.shown, limit), found.binding, found.word, found.cased)
    return texts[id(expr)].shown


def shorten(text: str, limit: int) -> str:
    """``text``, cut in the middle to ``limit`` characters."""
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}…{text[len(text) - (limit - half - 1) :]}"


def cells(data: bytes) -> list[tuple[int, str]]:
    r"""``data`` by characters: the byte offset of each, and its displayed form.

    Non-printable characters are shown as escapes (``\n``, ``\x1b``, ``\u200b``), and so are bytes that are not valid
    UTF-8.
    """
    found: list[tuple[int, str]] = []
    place = 0
    for character in data.decode("utf-8", "surrogateescape"):
        if "\udc80" <= character <= "\udcff":
            found.append((place, f"\\x{ord(character) - 0xDC00:02x}"))
            place += 1
            continue
        found.append((place, printable(character)))
        place += len(character.encode())
    return found


def quoted(data: bytes, limit: int | None = None) -> str:
    """``data`` in quotation marks; with ``limit``, cut in the middle to about that many characters."""
    shown = ['\\"' if text == '"' else "\\\\" if text == "\\" else text for _, text in cells(data)]
    if limit is not None and len(shown) > limit:
        half = limit // 2
        shown = [*shown[:half], "…", *shown[len(shown) - half :]]
    return f'"{"".join(shown)}"'


def character_class(ranges: Ranges) -> str:
    r"""Characters in regular-expression notation: ``[0-9]``, ``[^"\\]``, or a single one in quotation marks."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f'"{printable(chr(ranges[0][0]))}"'
    outside = negate(normalize((*ranges, *SURROGATES)))
    if not outside:
        return "any character"
    sign, shown = ("^", outside) if len(outside) < len(ranges) else ("", ranges)
    text = "".join(_shown_range(*each) for each in shown[:_SHOWN_RANGES])
    return f"[{sign}{text}{'…' if len(shown) > _SHOWN_RANGES else ''}]"


# --- node by node -------------------------------------------------------------------------------------


def _text(node: Expr, args: list[_Text], limit: int) -> _Text:  # noqa: C901  # one case a kind
    value = node.value
    if isinstance(value, bytes):
        word = value.decode("utf-8", "backslashreplace")
        shown = "".join(map(_plain, word))
        return _Text(shown, _ATOM if len(word) == 1 else _CONCAT, word)
    if isinstance(value, Dfa):
        ranges = single_characters(value)
        if ranges is None:
            return _Text(f"⟨automaton, {counted(value.num_states - 1, 'state')}⟩")
        return _class_text(ranges)
    if node.op is Op.BYTES:
        assert isinstance(value, int)
        if value >> 128 == 0:
            return _class_text(normalize((b, b) for b in range(128) if value >> b & 1))
        label = bytes_label(value)
        return _Text(label if label.startswith("[") or value == ALL_BYTES else f"[{label}]")
    if node.op is Op.UNION:
        return _union(args, limit)
    if node.op is Op.CONCAT:
        return _concatenation(args, limit)
    if isinstance(value, Unordered):
        return _unordered(value, [arg.shown for arg in args], limit)
    if isinstance(value, Lexicon):
        return _Text(f"⟨{counted(len(value), 'word')}⟩")
    if node.op is Op.SELECTION:
        low, high = value if isinstance(value, tuple) else (1, -1)
        return _Text(f"⟨{_times(low, high)} of {args[0].shown}, separated by {args[1].shown}⟩")
    if isinstance(value, tuple):
        return _Text(_inside(args[0], _ATOM) + _times(*value), _REPEAT)
    if node.op is Op.INTERSECT:
        return _Text("&".join(_inside(arg, _CONCAT) for arg in args), _UNION)
    if node.op is Op.COMPLEMENT:
        return _Text(f"~{_inside(args[0], _ATOM)}")
    if node.op is Op.ONE_TOKEN:
        return _Text(f"⟨one token of {args[0].shown}⟩")
    if isinstance(value, TokenBound):
        return _Text(f"⟨{args[0].shown} in at most {counted(value.most, 'token')}⟩")
    if node.op is Op.TOKENS:
        return _Text(f"⟨{value}⟩")
    fixed = {Op.EMPTY: "∅", Op.EPSILON: "()", Op.BEHIND: "(?<=…)", Op.CALL: f"⟨{value}⟩"}
    return _Text(fixed[node.op]) if node.op in fixed else args[0]


def _union(args: list[_Text], limit: int) -> _Text:
    some = [arg for arg in args if arg.shown != "()"]
    if len(some) < len(args):
        rest = _union(some, limit) if len(some) > 1 else some[0] if some else _Text("()")
        return _Text(_inside(rest, _ATOM) + "?", _REPEAT)
    return _Text(_joined("|", [arg.shown for arg in args], limit), _UNION)


def _concatenation(args: list[_Text], limit: int) -> _Text:
    if any(arg.cased for arg in args) and all(arg.word is not None for arg in args):
        word = "".join(arg.word or "" for arg in args)
        return _Text(f'"{"".join(map(printable, word))}"i')
    return _Text(_joined("", [_inside(arg, _CONCAT) for arg in args], limit), _CONCAT)


def _unordered(value: Unordered, args: list[str], limit: int) -> _Text:
    """``⟨a, b?, c* in any order, with "," between⟩``."""
    separator, *members = args
    marks = ["", "?", "*"]
    repeats = int(value.repeats > 0)
    last = len(members) - repeats
    kinds = [0] * value.required + [1] * (last - value.required) + [2] * repeats
    shown = [f"{member}{marks[kind]}" for member, kind in zip(members, kinds, strict=True)]
    between = "" if separator == "()" else f", with {separator} between"
    return _Text(f"⟨{_joined(', ', shown, limit)} in any order{between}⟩")


def _joined(sign: str, parts: list[str], limit: int) -> str:
    """Joined; of very many parts only so many at both ends that the middle is cut out anyway."""
    if len(parts) > 2 * limit:
        parts = [*parts[:limit], "…", *parts[-limit:]]
    return sign.join(parts)


def _inside(text: _Text, binding: int) -> str:
    return text.shown if text.binding >= binding else f"({text.shown})"


def _times(low: int, high: int) -> str:
    if (low, high) in ((0, -1), (1, -1), (0, 1)):
        return {(0, -1): "*", (1, -1): "+", (0, 1): "?"}[low, high]
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high < 0 else high}}}"


def _class_text(ranges: Ranges) -> _Text:
    """A class; one letter in all its cases can be part of a word."""
    count = sum(high - low + 1 for low, high in ranges)
    shown = character_class(ranges)
    if count == 1:
        letter = chr(ranges[0][0])
        return _Text(_plain(letter), _ATOM, letter)
    if count <= _LETTER_CASES:
        letters = [chr(code) for low, high in ranges for code in range(low, high + 1)]
        if len({letter.casefold() for letter in letters}) == 1:
            return _Text(shown, _ATOM, min(letters, key=lambda c: (c.isupper(), c)), True)
    return _Text("." if shown == "any character" else shown.replace(" ", "␣"))


def _plain(character: str) -> str:
    """A character that represents itself."""
    if character == " ":
        return "␣"
    return f"\\{character}" if character in _ESCAPED else printable(character)


def _shown_range(first: int, last: int) -> str:
    ends = [("\\" if chr(end) in _ESCAPED_IN_CLASS else "") + printable(chr(end)) for end in (first, last)]
    if first == last:
        return ends[0]
    return "".join(ends) if first + 1 == last else "-".join(ends)
