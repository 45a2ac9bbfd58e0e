"""The functions of xgrammar's EBNF: ``TagDispatch``, ``Regex``, ``Substring``, and those that match tokens.

Only a vocabulary knows token ids: ``Token(5, 7)`` is the token class ``[5,7]``, which ``compile`` looks up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT
from tokenfst.automata.expressions.expression import Expr, TokenName, concat, intersect, repeat, tokens, union
from tokenfst.automata.notations.parsing.reading import Token
from tokenfst.automata.pieces.free_text import dispatch
from tokenfst.automata.pieces.text import chunks
from tokenfst.automata.regex.ecma import ecma_pattern
from tokenfst.budget import Budget
from tokenfst.common.digits import natural
from tokenfst.errors import PatternError

_SETTINGS = {
    "TagDispatch": ("loop_after_dispatch", "excludes"),
    "TokenTagDispatch": ("loop_after_dispatch", "excludes"),
    "Regex": ("json_string", "flags"),
}
_OLD = {
    "stop_eos": "whether a text may end is said by what follows: leave it out",
    "stop_str": "write what ends the text after the TagDispatch, and exclude it: excludes=(...)",
}


MOST_ID = 2**31 - 1
"""The greatest token id."""
_UNESCAPED = ((0x20, 0x21), (0x23, 0x5B), (0x5D, MAX_CODE_POINT))
"""The characters that need no escape in a JSON string."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a macro: a token of the text, or a tuple of arguments. ``name``: of a named argument."""

    value: Token | list[Argument]
    name: Token | None = None


class Macros:
    """Translates macros. ``call`` gives the expression of a rule's name, ``text`` the text of a string literal;
    ``fail`` raises the error for a position.
    """

    def __init__(
        self,
        call: Callable[[Token], Expr],
        text: Callable[[Token], str],
        fail: Callable[..., NoReturn],
        budget: Budget | None,
    ) -> None:
        self.call, self.text, self.fail, self.budget = call, text, fail, budget

    def expr(self, macro: Token, arguments: list[Argument]) -> Expr:
        """The words of a macro."""
        given = [each for each in arguments if each.name is None]
        settings = self.settings(macro, [each for each in arguments if each.name is not None])
        match str(macro):
            case "Regex":
                return self.regex(macro, given, settings)
            case "Substring":
                return self.substring(macro, given)
            case "Token":
                return token_class(self.ids(macro, given))
            case "ExcludeToken":
                return token_class(self.ids(macro, given), excluded=True)
            case "TagDispatch":
                return self.tag_dispatch(macro, given, settings)
            case _:
                return self.token_dispatch(macro, given, settings)

    def settings(self, macro: Token, given: list[Argument]) -> dict[str, Argument]:
        """The named arguments."""
        found: dict[str, Argument] = {}
        for each in given:
            assert each.name is not None
            name, known = str(each.name), _SETTINGS.get(str(macro), ())
            if name in _OLD:
                self.fail(f"{name} is of an older notation: {_OLD[name]}", each.name.start_pos)
            if name not in known:
                self.fail(
                    f"{macro} has no argument {name!r}; its arguments are: {', '.join(known) or 'none'}",
                    each.name.start_pos,
                )
            if name in found:
                self.fail(f"the argument {name!r} is given twice", each.name.start_pos)
            found[name] = each
        return found

    def substring(self, macro: Token, given: list[Argument]) -> Expr:
        """A sequence of consecutive chunks that starts at any chunk."""
        if not all(isinstance(each.value, Token) and each.value.type == "STRING" for each in given):
            self.fail("Substring needs strings", macro.start_pos)
        texts = [self.text(each.value) for each in given if isinstance(each.value, Token)]
        return chunks([text for text in texts if text])

    def regex(self, macro: Token, given: list[Argument], settings: dict[str, Argument]) -> Expr:
        """A pattern as xgrammar reads it; it must match all of a text. With ``json_string``, only those texts that need
        no escape in a JSON string.
        """
        if len(given) != 1 or not isinstance(given[0].value, Token) or given[0].value.type != "STRING":
            self.fail("Regex needs one pattern, as a string", macro.start_pos)
        pattern = self.text(given[0].value)
        flags = self.flags(macro, settings.get("flags"))
        try:
            ecma_pattern(pattern, self.budget)  # a group of its own
            found = ecma_pattern(f"^(?{flags}:{pattern})$", self.budget).expr
            plain = self.boolean(macro, settings.get("json_string"), default=False)
            return intersect(found, repeat(character_set(_UNESCAPED, True))) if plain else found
        except PatternError as error:
            return self.fail(error.message, given[0].value.start_pos, type(error))

    def tag_dispatch(self, macro: Token, given: list[Argument], settings: dict[str, Argument]) -> Expr:
        """Free text with tags, each of which is followed by a rule."""
        tags: dict[bytes, Expr] = {}
        excludes = self.strings(macro, settings.get("excludes"))
        for each in given:
            tag, rule = self.pair(macro, each, "STRING", '("tag", rule)')
            text = self.text(tag)
            if not text:
                self.fail("a tag must not be empty", tag.start_pos)
            data, body = text.encode(), self.call(rule)
            self.check_tag(data, [known for known in tags if known != data], excludes, tag.start_pos)
            tags[data] = union(tags[data], body) if data in tags else body
        loop = self.boolean(macro, settings.get("loop_after_dispatch"))
        return dispatch(tuple(tags.items()), excludes, loop, self.budget or Budget())

    def check_tag(self, tag: bytes, others: list[bytes], excludes: tuple[bytes, ...], at: int) -> None:
        """Refuse a tag that can never be reached, because it contains another tag or an excluded text."""
        for text in excludes:
            if text in tag:
                self.fail(
                    f"the tag {tag.decode()!r} can never be generated: it contains the excluded text {text.decode()!r}",
                    at,
                )
        for other in others:
            short, long = sorted((tag, other), key=len)
            if short in long[:-1]:
                shown = repr(long.decode()), repr(short.decode())
                self.fail(
                    f"the tag {shown[0]} can never be generated: it contains the tag {shown[1]}, which comes first",
                    at,
                )

    def token_dispatch(self, macro: Token, given: list[Argument], settings: dict[str, Argument]) -> Expr:
        """Any tokens, with rules after some of them."""
        excluded = settings.get("excludes")
        others = [] if excluded is None else self.ids(macro, self.members(excluded))
        triggers: dict[int, Expr] = {}
        for each in given:
            trigger, rule = self.pair(macro, each, "INT", "(token id, rule)")
            number = token_id(trigger, trigger.start_pos, self.fail)
            if number in triggers or number in others:
                self.fail(f"the token {number} is a trigger twice, or is also excluded", trigger.start_pos)
            triggers[number] = self.call(rule)
        delimiters = [*triggers, *others]
        free = repeat(token_class(delimiters, excluded=True) if delimiters else any_token())
        some = union(*(concat(free, token_class([number]), body) for number, body in triggers.items()))
        loop = self.boolean(macro, settings.get("loop_after_dispatch"))
        return concat(repeat(some), free) if loop else union(free, some)

    # --- arguments ------------------------------------------------------------------------------------

    def ids(self, macro: Token, given: list[Argument]) -> list[int]:
        """Token ids."""
        found = []
        for each in given:
            if not isinstance(each.value, Token) or each.value.type != "INT":
                self.fail(f"{macro} needs token ids here", macro.start_pos)
            found.append(token_id(each.value, each.value.start_pos, self.fail))
        if not found and str(macro) in ("Token", "ExcludeToken"):
            self.fail(f"{macro} needs at least one token id", macro.start_pos)
        return found

    def members(self, argument: Argument) -> list[Argument]:
        """The members of a tuple; an argument in brackets by itself is a tuple of one."""
        return argument.value if isinstance(argument.value, list) else [argument]

    def strings(self, macro: Token, argument: Argument | None) -> tuple[bytes, ...]:
        """A tuple of strings."""
        found = []
        for each in self.members(argument) if argument is not None else ():
            if not isinstance(each.value, Token) or each.value.type != "STRING" or not self.text(each.value):
                self.fail(f"{macro}: excludes must be non-empty strings", macro.start_pos)
            found.append(self.text(each.value).encode())
        return tuple(found)

    def pair(self, macro: Token, argument: Argument, kind: str, wanted: str) -> tuple[Token, Token]:
        """A pair of a tag or token id and a rule."""
        both = argument.value if isinstance(argument.value, list) else []
        values = [each.value for each in both]
        if len(values) != 2 or not isinstance(values[0], Token) or not isinstance(values[1], Token):
            self.fail(f"{macro} needs pairs: {wanted}", macro.start_pos)
        if values[0].type != kind or values[1].type != "NAME":
            self.fail(f"{macro} needs pairs: {wanted}", values[0].start_pos)
        return values[0], values[1]

    def flags(self, macro: Token, argument: Argument | None) -> str:
        """Those flags of a pattern that change what it matches. Patterns always are over code points."""
        if argument is None:
            return ""
        if not isinstance(argument.value, Token) or argument.value.type != "STRING":
            self.fail(f"{macro}: flags must be a string", macro.start_pos)
        given = self.text(argument.value)
        for flag in given:
            if flag not in "isu":
                self.fail(f"{macro}: unknown flag {flag!r}; expected i, s or u", argument.value.start_pos)
        return "".join(flag for flag in "is" if flag in given)

    def boolean(self, macro: Token, argument: Argument | None, *, default: bool = True) -> bool:
        """True or false; ``default`` if the argument is missing."""
        if argument is None:
            return default
        if not isinstance(argument.value, Token) or str(argument.value) not in ("true", "false"):
            self.fail(f"{macro}: {argument.name} must be true or false", macro.start_pos)
        return str(argument.value) == "true"


def any_token() -> Expr:
    """One token, text or special, except for end tokens."""
    return tokens(TokenName("[*]", special=False))


def token_id(digits: str, position: int, fail: Callable[..., NoReturn]) -> int:
    """The token id that digits write. ``fail`` raises the error for a position."""
    found = natural(digits, MOST_ID)
    if found > MOST_ID:
        fail(f"a token id is at most {MOST_ID:,}", position)
    return found


def token_class(ids: list[int], *, excluded: bool = False) -> Expr:
    """One of these tokens, or (``excluded``) any other."""
    listed = ",".join(map(str, sorted(set(ids))))
    return tokens(TokenName(f"[{'^' if excluded else ''}{listed}]", special=False))
