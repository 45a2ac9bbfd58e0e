"""From formats to expressions: the words of each format, followed by the text that closes it.

``assembling`` combines the contents: the result is a language if all of them are languages. ``free_text`` makes free
text, ``token_text`` makes runs of tokens, ``xml_writing`` writes JSON Schemas in other styles.

Let u be free text that stays open, U_t free text up to a trigger t, T_t what may follow t, and S the union of all U_t
T_t. ``triggered_tags`` is S* u; with ``stop_after_first`` it is u | S, with ``at_least_one`` S₁ S* u, where S₁ is the
union of all t T_t. Inside of a tag, its ends are delimiters too, and u extends to the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT
from tokenfst.automata.expressions.expression import (
    EMPTY,
    Expr,
    TokenName,
    concat,
    intersect,
    optional,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.pieces.tokens import TEXT_TOKEN
from tokenfst.automata.regex.ecma import ecma_pattern
from tokenfst.automata.structural_tags.assembling import PLAIN, Makers, Parts
from tokenfst.automata.structural_tags.closing import OPEN, Closing, read_closing
from tokenfst.automata.structural_tags.documents.formats import (
    AnyText,
    AnyTokens,
    ConstString,
    Delimiter,
    Format,
    GrammarText,
    JsonSchema,
    Or,
    Pattern,
    Repeat,
    Rule,
    Separated,
    Sequence,
    Tag,
    Token,
    TokenRef,
    TokenTriggered,
    Triggered,
    needs_end,
)
from tokenfst.automata.structural_tags.end_tokens import stopping
from tokenfst.automata.structural_tags.free_text import FreeText
from tokenfst.automata.structural_tags.schemas import Schemas
from tokenfst.automata.structural_tags.special_tokens import (
    Delimiters,
    Spelled,
    shown,
    spelled_expr,
    token_expr,
)
from tokenfst.automata.structural_tags.token_text import TokenText, special_but
from tokenfst.budget import Budget
from tokenfst.errors import PatternError, StructuralTagError


class Builder:
    """Builds the constraint of one structural tag."""

    def __init__(
        self,
        delimiters: Delimiters,
        schemas: Schemas,
        token_text: TokenText,
        budget: Budget | None,
        makers: Makers = PLAIN,
    ) -> None:
        self.delimiters, self.schemas, self.token_text, self.budget = delimiters, schemas, token_text, budget
        self.parts = Parts(budget, makers)
        self._leaves: dict[Hashable, Constraint] = {}
        """A cache by the ids of schemas or formats."""

    def build(self, format: Format) -> Expr:
        """The words of the whole tag, including those that an end token of the vocabulary ends."""
        return union(self.expr(format, OPEN), stopping(self, format))

    def finish(self, expr: Expr, source: str) -> Language | Grammar:
        """The constraint whose words are ``expr``."""
        return self.parts.finish(expr, source)

    def expr(self, format: Format, closing: Closing) -> Expr:
        """The words of a format, each followed by the text that closes it."""
        if isinstance(format, AnyText):
            return self._any_text(format, closing)
        if isinstance(format, Triggered):
            return self._triggered(format, closing)
        if isinstance(format, AnyTokens):
            return self.token_text.any_tokens(format, closing)
        if isinstance(format, TokenTriggered):
            return self._token_triggered(format, closing)
        if isinstance(format, Sequence):
            *before, last = format.elements
            return concat(*(self.expr(each, closing.elsewhere) for each in before), self.expr(last, closing))
        if isinstance(format, Or):
            return union(*(self.expr(each, closing) for each in format.elements))
        if isinstance(format, Repeat):
            return self._repeat(format, closing)
        return concat(self._limited(format), closing.expr)

    def _limited(self, format: Format) -> Expr:
        """The words of a format that defines its own end."""
        if isinstance(format, ConstString):
            return self.delimiters.expr(format.value, f"{format.pointer}/value")
        if isinstance(format, (JsonSchema, GrammarText, Pattern)):
            return self.parts.expr(self.leaf(format))
        if isinstance(format, Tag):
            return concat(
                self._delimiter(format.begin, f"{format.pointer}/begin"),
                self._tagged(format.content, format.ends),
            )
        if isinstance(format, Separated):
            tag, separator = self.separated(format)
            some = tag if separator is EMPTY else concat(tag, repeat(concat(separator, tag)))
            return some if format.at_least_one else optional(some)
        assert isinstance(format, Token)
        return token_expr(self.delimiters.token(format.token))

    def leaf(self, format: JsonSchema | GrammarText | Pattern) -> Constraint:
        """The constraint of a format that contains no other format, built once."""
        key: Hashable = id(format)
        if isinstance(format, JsonSchema):
            how = format.style, format.any_order, format.max_whitespace, format.excludes
            key = id(format.json_schema), how
        found = self._leaves.get(key)
        if found is None:
            found = self._leaves[key] = self._made_leaf(format)
        return found

    def _made_leaf(self, format: JsonSchema | GrammarText | Pattern) -> Constraint:
        if isinstance(format, JsonSchema):
            return self.schemas.constraint(format)
        if isinstance(format, Pattern):
            place, pattern = f"{format.pointer}/pattern", format.pattern
            _placed(place, lambda: ecma_pattern(pattern, self.budget))  # it brings its own brackets
            return _placed(place, lambda: ecma_pattern(f"^(?:{pattern})$", self.budget))
        grammar = format.grammar
        if isinstance(grammar, Constraint):
            return grammar
        return _placed(f"{format.pointer}/grammar", lambda: ebnf(grammar, budget=self.budget))

    def _delimiter(self, delimiter: Delimiter, pointer: str) -> Expr:
        if isinstance(delimiter, TokenRef):
            return token_expr(self.delimiters.token(delimiter))
        return self.delimiters.expr(delimiter, pointer)

    def _tagged(self, content: Format, ends: tuple[Delimiter, ...]) -> Expr:
        """A content followed by one of its ends."""
        pointer = f"{content.pointer.removesuffix('/content')}/end"
        if needs_end(content) and not any(ends):
            raise StructuralTagError(
                pointer,
                "this content has no end: give a tag end that is not empty, or list "
                "in 'excludes' the texts that it must not contain",
            )
        inner = self.expr(content, read_closing(ends, self.delimiters, pointer))
        sentinels = self.schemas.sentinels
        if sentinels is None:
            return inner
        return concat(sentinels.opened(pointer.removesuffix("/end")), inner, sentinels.closed)

    def _repeat(self, format: Repeat, closing: Closing) -> Expr:
        low, high = format.low, format.high
        if not closing.here:
            return repeat(self.expr(format.content, closing), low, high)
        if high == 0:
            return closing.expr
        more = repeat(
            self.expr(format.content, closing.elsewhere), max(low - 1, 0), None if high is None else high - 1
        )
        some = concat(more, self.expr(format.content, closing))
        return some if low else union(closing.expr, some)

    # --- free text ------------------------------------------------------------------------------------

    def _any_text(self, format: AnyText, closing: Closing) -> Expr:
        limit = None
        if format.max_chars is not None:
            limit = repeat(character_set(((0, MAX_CODE_POINT),), True), 0, format.max_chars)
        if format.max_tokens is not None:
            tokens = repeat(TEXT_TOKEN, 0, format.max_tokens)
            limit = tokens if limit is None else intersect(limit, tokens)
        text = self._free_text(closing.delimiters, format, closing, limit)
        return _closed(text, closing)

    def _free_text(
        self,
        delimiters: tuple[Spelled, ...],
        format: AnyText | Triggered,
        closing: Closing,
        limit: Expr | None = None,
        spellings: Iterable[bytes] = (),
    ) -> FreeText:
        excludes, pointer = format.excludes, f"{format.pointer}/excludes"
        held = (*(each.encode() for each in excludes), *spellings, *closing.avoided)
        others = EMPTY
        if self.token_text.control_tokens and limit is None:
            named = [
                *delimiters,
                *(way for each in excludes for way in self.delimiters.variants(each, pointer)),
            ]
            others = special_but({part for way in named for part in way if isinstance(part, TokenName)})
        return FreeText(delimiters, held, self.parts.budget or Budget(), limit, others)

    def _triggered(self, format: Triggered, closing: Closing) -> Expr:
        at_once, later, text = self._pieces(format, closing)
        return _looped(format, at_once, later, _closed(text, closing))

    def _pieces(
        self, format: Triggered, closing: Closing, after: Callable[[Rule], Expr] | None = None
    ) -> tuple[Expr, Expr, FreeText]:
        """Triggers with their continuations, at the beginning and after free text, and the free text itself.

        ``after``: what follows a rule's beginning, if that is not the rule's own content.
        """
        variants: list[list[Spelled]] = []
        spellings: list[bytes] = []
        for trigger, place in zip(format.triggers, format.places, strict=True):
            variants.append(self.delimiters.variants(trigger, place))
            spelling = self.delimiters.spelling(trigger, place)
            if spelling is not None:
                spellings.append(spelling)
        delimiters = tuple(each for way in variants for each in way) + closing.delimiters
        text = self._free_text(delimiters, format, closing, spellings=spellings)
        for trigger, place, ways in zip(format.triggers, format.places, variants, strict=True):
            self._check_reached(text, trigger, place, ways)
        after = after or (lambda rule: self._rule(format, rule, closing))
        following = [self._after(format, number, after) for number in range(len(format.triggers))]
        pairs = list(zip(variants, following, strict=True))
        later = union(*(concat(union(*map(text.until, ways)), rest) for ways, rest in pairs))
        at_once = union(*(concat(union(*map(spelled_expr, ways)), rest) for ways, rest in pairs))
        return at_once, later, text

    def _check_reached(self, text: FreeText, trigger: str, place: str, ways: list[Spelled]) -> None:
        """Raise StructuralTagError if no reading of a trigger can be the first marker."""
        blockers = [blocker for blocker in map(text.blocker, ways) if blocker is not None]
        if len(blockers) == len(ways):
            raise StructuralTagError(
                place,
                f"the trigger {trigger!r} can never fire: {shown(blockers[0])!r}, which ends free text or is excluded "
                "from it, is a part of it. Remove one of the two",
            )

    def _after(self, format: Triggered, number: int, after: Callable[[Rule], Expr]) -> Expr:
        """What may follow a trigger."""
        trigger = format.triggers[number]
        found = []
        for rule in format.rules:
            if rule.trigger != number:
                continue
            assert isinstance(rule.begin, str)
            pointer = f"{rule.content.pointer.removesuffix('/content')}/begin"
            crossed = self.delimiters.crossed(trigger + rule.begin, len(trigger))
            if crossed is not None:
                raise StructuralTagError(
                    format.places[number],
                    f"the trigger {trigger!r} ends inside of the special token {crossed!r}: write the token's full "
                    'name, or choose special_tokens="text"',
                )
            found.append(concat(self.delimiters.expr(rule.begin, pointer), after(rule)))
        return union(*found)

    def _rule(self, format: Triggered | TokenTriggered, rule: Rule, closing: Closing) -> Expr:
        """What follows the beginning of a rule; if that ends the whole, with the text that closes the whole."""
        closing = closing if format.stop_after_first else closing.elsewhere
        if rule.ends is None:
            return self.expr(rule.content, closing)
        return concat(self._tagged(rule.content, rule.ends), closing.expr)

    def _token_triggered(self, format: TokenTriggered, closing: Closing) -> Expr:
        at_once, later, text = self._token_pieces(format, closing)
        return _looped(format, at_once, later, concat(text, closing.expr))

    def _token_pieces(
        self, format: TokenTriggered, closing: Closing, after: Callable[[Rule], Expr] | None = None
    ) -> tuple[Expr, Expr, Expr]:
        """As ``_pieces``, over tokens."""
        triggers = [self.delimiters.token(each) for each in format.triggers]
        excluded = {self.delimiters.token(each) for each in format.excludes}
        for token, reference in zip(triggers, format.triggers, strict=True):
            if token in excluded or token in closing.tokens:
                why = "excluded" if token in excluded else "an end of the tag around it"
                raise StructuralTagError(
                    reference.pointer,
                    f"the token {reference.token!r} can never fire: it is {why}. Remove one of the two",
                )
        text = self.token_text.between({*triggers, *excluded, *closing.tokens})
        after = after or (lambda rule: self._rule(format, rule, closing))
        at_once = union(*(concat(token_expr(triggers[rule.trigger]), after(rule)) for rule in format.rules))
        return at_once, concat(text, at_once), text

    def separated(self, format: Separated) -> tuple[Expr, Expr]:
        """The expression of a tag, and that of the separator between two tags; EMPTY if there is at most one tag."""
        tag = union(*map(self._limited, format.tags))
        if format.stop_after_first:
            return tag, EMPTY
        return tag, self.delimiters.expr(format.separator, f"{format.pointer}/separator")

    # --- end tokens -----------------------------------------------------------------------------------

    def stopped(self, tag: Tag) -> Expr:
        """The words of a tag whose end is an end token of the vocabulary; EMPTY if it has no such end."""
        last = self._stopped(tag.content, tag.ends)
        return last if last is EMPTY else concat(self._delimiter(tag.begin, f"{tag.pointer}/begin"), last)

    def stopped_behind_triggers(self, format: Triggered | TokenTriggered) -> Expr:
        """Free text with tags, the last of which ends with an end token; EMPTY if no tag may end so."""

        def after(rule: Rule) -> Expr:
            if rule.ends is None:
                return stopping(self, rule.content)
            return self._stopped(rule.content, rule.ends)

        if all(after(rule) is EMPTY for rule in format.rules):
            return EMPTY
        at_once, later = self._tags(format)
        last_at_once, last_later = self._tags(format, after)
        if format.at_least_one:
            more = EMPTY if format.stop_after_first else concat(at_once, repeat(later), last_later)
            return union(last_at_once, more)
        return last_later if format.stop_after_first else concat(repeat(later), last_later)

    def _tags(
        self, format: Triggered | TokenTriggered, after: Callable[[Rule], Expr] | None = None
    ) -> tuple[Expr, Expr]:
        """Triggers with what follows them, at the beginning and after free text."""
        if isinstance(format, Triggered):
            return self._pieces(format, OPEN, after)[:2]
        return self._token_pieces(format, OPEN, after)[:2]

    def _stopped(self, content: Format, ends: tuple[Delimiter, ...]) -> Expr:
        closing = read_closing(ends, self.delimiters, f"{content.pointer.removesuffix('/content')}/end")
        return union(
            self.expr(content, closing.elsewhere) if closing.stops else EMPTY,
            stopping(self, content) if "" in ends else EMPTY,
        )


def _closed(text: FreeText, closing: Closing) -> Expr:
    """Free text, followed by the text that closes it."""
    if not closing.here:
        return text.open()
    ways = [text.until(delimiter, closes=True) for delimiter in closing.delimiters]
    if closing.other is not None:
        ways.append(concat(text.open(), closing.other))
    return union(*ways)


def _looped(format: Triggered | TokenTriggered, at_once: Expr, later: Expr, text: Expr) -> Expr:
    """Tags and free text in turn. ``text``: free text with the text that closes it; with ``stop_after_first``, tags are
    closed too.
    """
    if format.at_least_one:
        return at_once if format.stop_after_first else concat(at_once, repeat(later), text)
    return union(text, later) if format.stop_after_first else concat(repeat(later), text)


def _placed(pointer: str, make: Callable[[], Constraint]) -> Constraint:
    """The result of ``make``; its errors get the position in the document."""
    try:
        return make()
    except PatternError as error:
        raise StructuralTagError(pointer, str(error)) from error
