"""Token-level languages, against the definition (``reference.tokens.token_groups``), mask by mask.

In a world of a few tokens every sequence of up to three (soak: four) is tried. With n tokens left a mask is known
exactly: a token is allowed if some word of at most n tokens goes on with it. So every mask along every way is compared.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

import tokenfst
from reference.tokens import artifact as slow_artifact
from reference.tokens.token_groups import SlowTokens
from tokenfst import (
    EmptyLanguageError,
    Grammar,
    Language,
    Matcher,
    TokenAutomaton,
    Vocabulary,
    _native,
    one_token,
    regex,
    special_token,
    token_class,
)
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.expression import Expr, TokenName
from tokenfst.automata.expressions.program import linearize
from tokenfst.automata.pieces.tokens import PARAGRAPH_TOKEN, TEXT_TOKEN
from tokenfst.budget import Budget
from tokenfst.errors import (
    ConstraintError,
    PatternSyntaxError,
    TokenIdError,
    TokenLimitError,
    UnsupportedPatternError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.token_classes import find_classes

TOKENS = [b"a", b"b", b"ab", b"\n", b"ba\n", b"ab", b"", b"", b""]
EOS = 6
SMALL = Vocabulary(TOKENS, EOS, {"<t>": 7, "<i>": 8})
"""Not every byte is a token."""
CLASSES = {"IMAGE": [7, 8], "AB": [2, 5], "MIXED": [0, 8], "BREAK": [3, 4]}
NAMES = {**CLASSES, "<t>": [7], "<i>": [8]}


def named(name: str) -> Expr:
    return ex.tokens(TokenName(name, name.startswith("<")))


LEAVES = (
    ex.literal(b"a"),
    ex.literal(b"b"),
    ex.literal(b"ab"),
    ex.byte_set(1 << 10 | 1 << ord("a")),
    ex.EPSILON,
    TEXT_TOKEN,
    PARAGRAPH_TOKEN,
    ex.one_token(ex.repeat(ex.literal(b"a"), 1)),
    ex.one_token(ex.union(ex.literal(b"ab"), ex.literal(b"ba\n"))),
    *map(named, NAMES),
)


WAYS = ("concat", "concat", "union", "repeat", "and", "without")


def random_expr(rng: random.Random, depth: int, *, tokens: bool = True, among: Sequence[str] = WAYS) -> Expr:
    """A random expression; without ``tokens``, of bytes alone."""
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(LEAVES if tokens else LEAVES[:5])

    def part() -> Expr:
        return random_expr(rng, depth - 1, tokens=tokens, among=among)

    match rng.choice(among):
        case "concat":
            return ex.concat(*(part() for _ in range(rng.choice([2, 3]))))
        case "union":
            return ex.union(part(), part())
        case "repeat":
            low = rng.choice([0, 0, 1, 2])
            return ex.repeat(part(), low, rng.choice([None, None, low + 1, low + 2]))
        case "and":
            return ex.intersect(part(), part())
    return ex.intersect(part(), ex.complement(random_expr(rng, depth - 1, tokens=False)))


def mask(matcher: Matcher, size: int) -> set[int]:
    row = tokenfst.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(row, 0)
    bits = np.unpackbits(row[0].view(np.uint8), bitorder="little")[:size]
    return set(np.flatnonzero(bits).tolist())


def check(automaton: TokenAutomaton, words: set[tuple[int, ...]], longest: int) -> None:
    """Every mask with ``longest`` tokens, along every way, and what else a matcher says there."""
    size, eos = len(TOKENS), EOS
    nearest: dict[tuple[int, ...], int] = {}
    for word in words:
        for length in range(len(word) + 1):
            prefix = word[:length]
            nearest[prefix] = min(nearest.get(prefix, longest), len(word) - length)
    if not words:
        with pytest.raises((TokenLimitError, EmptyLanguageError)):
            automaton.matcher(longest)
        return
    bounded, free = automaton.matcher(longest), automaton.matcher()

    def visit(prefix: tuple[int, ...]) -> None:
        left = longest - len(prefix)
        wanted = {
            token
            for token in range(size)
            if len(prefix) + 1 + nearest.get((*prefix, token), longest + 1) <= longest
        }
        assert bounded.distance() == nearest[prefix], prefix
        assert bounded.is_accepting() == (prefix in words)
        assert mask(bounded, size) == wanted | ({eos} if prefix in words and left else set()), prefix
        allowed = mask(free, size)
        assert wanted <= allowed
        assert free.validate_tokens(free.forced_tokens()) == len(free.forced_tokens())
        for token in range(size):
            if token == eos:
                continue
            assert free.accept_token(token) == (token in allowed), (prefix, token)
            if token in allowed:
                assert free.distance() < 1 << 31
                free.rollback(1)
            assert bounded.accept_token(token) == (token in wanted), (prefix, token)
            if token in wanted:
                assert free.accept_token(token)
                visit((*prefix, token))
                bounded.rollback(1)
                free.rollback(1)

    visit(())


def compiled(constraint: Language | Grammar, vocabulary: Vocabulary = SMALL) -> TokenAutomaton:
    return tokenfst.compile(constraint, vocabulary, token_classes=CLASSES)


def checked(expr: Expr, longest: int) -> tuple[TokenAutomaton, set[tuple[int, ...]]] | None:
    """The automaton of an expression, which ``check`` has looked at, and its words; None if there are no words."""
    words = SlowTokens(TOKENS, EOS, NAMES).language(expr, longest)
    try:
        automaton = compiled(Language(expr, "random"))
    except EmptyLanguageError:
        assert not words
        return None
    check(automaton, words, longest)
    return automaton, words


COMPLETE = Vocabulary(
    TOKENS + [bytes([byte]) for byte in range(256) if bytes([byte]) not in TOKENS], EOS, {"<t>": 7, "<i>": 8}
)


@pytest.mark.parametrize("seed", range(150))
def test_random_expressions(seed: int, tmp_path: Path) -> None:
    check_random(random.Random(seed), tmp_path, 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(150, 750))
def test_random_expressions_soak(seed: int, tmp_path: Path) -> None:
    check_random(random.Random(seed), tmp_path, 4)


def check_random(rng: random.Random, folder: Path, longest: int) -> None:
    expr = random_expr(rng, rng.choice([1, 2, 2, 3]))
    made = checked(expr, longest)
    if made is not None and rng.random() < 0.3:
        automaton, words = made
        expanded = automaton.expand()
        check(expanded, words, longest)
        path = folder / "random.safetensors"
        expanded.save(path)
        check(TokenAutomaton.load(path, SMALL), words, longest)
        data = path.read_bytes()
        slow = slow_artifact.read(data, len(SMALL))
        slow_artifact.meaning(slow, SMALL)
        slow_artifact.canonical(slow)
        again = compiled(Language(expr, "random")).expand()
        assert again.arrays()["table"].tobytes() == expanded.arrays()["table"].tobytes()


def sequences(automaton: TokenAutomaton, longest: int) -> set[tuple[int, ...]]:
    """The words of at most so many tokens, by the explicit arcs."""
    source, token, target, _, start, final = automaton.arcs()
    onward: dict[int, list[tuple[int, int]]] = {}
    for a, t, b in zip(source.tolist(), token.tolist(), target.tolist(), strict=True):
        onward.setdefault(a, []).append((t, b))
    found, layer = set(), [((), start)]
    for _ in range(longest + 1):
        found |= {word for word, state in layer if state in set(final.tolist())}
        layer = [((*word, t), b) for word, state in layer for t, b in onward.get(state, [])]
    return found


@pytest.mark.parametrize("seed", range(40))
def test_explicit_arcs(seed: int) -> None:
    rng = random.Random(seed)
    expr = random_expr(rng, 2)
    words = SlowTokens(TOKENS, EOS, NAMES).language(expr, 3)
    try:
        automaton = compiled(Language(expr, "random"))
    except EmptyLanguageError:
        assert not words
        return
    assert sequences(automaton, 3) == words


RULES: Mapping[str, Mapping[str, Expr]] = {
    "text inside": {"s": ex.union(ex.concat(ex.literal(b"a"), ex.call("s"), ex.literal(b"b")), TEXT_TOKEN)},
    "text first": {"s": ex.concat(TEXT_TOKEN, ex.optional(ex.concat(ex.call("s"), ex.literal(b"b"))))},
    "token at the end of a frame": {
        "s": ex.union(ex.concat(ex.literal(b"a"), ex.call("s"), PARAGRAPH_TOKEN), ex.literal(b"b"))
    },
    "nullable parts": {
        "s": ex.union(ex.concat(ex.literal(b"a"), ex.call("s"), ex.call("t")), ex.EPSILON),
        "t": ex.union(ex.concat(ex.literal(b"b"), ex.optional(ex.call("s")), TEXT_TOKEN), ex.EPSILON),
    },
    "optional tokens": {
        "s": ex.concat(
            ex.literal(b"a"), ex.optional(ex.call("s")), ex.optional(TEXT_TOKEN), ex.optional(named("MIXED"))
        )
    },
    "specials": {"s": ex.union(ex.concat(named("<t>"), ex.call("s"), named("IMAGE")), ex.literal(b"ab"))},
    "classes": {"s": ex.union(ex.concat(named("AB"), ex.call("s"), named("BREAK")), named("MIXED"))},
    "two ways": {
        "s": ex.union(
            ex.concat(ex.literal(b"ab"), ex.call("s"), named("BREAK")),
            ex.concat(TEXT_TOKEN, ex.call("s"), ex.literal(b"b")),
            ex.EPSILON,
        )
    },
}


@pytest.mark.parametrize("name", RULES)
def test_grammars(name: str) -> None:
    rules = RULES[name]
    tokens = [TOKENS[token] for token in (0, 1, 3, 2)]
    vocabulary = Vocabulary(
        [*tokens, b"", b"", b"", *(bytes([b]) for b in range(256) if bytes([b]) not in TOKENS)],
        4,
        {"<t>": 5, "<i>": 6},
    )
    classes: dict[str, Sequence[int]] = {"IMAGE": [5, 6], "AB": [3], "MIXED": [0, 6], "BREAK": [2]}
    automaton = tokenfst.compile(Grammar(rules, "s"), vocabulary, token_classes=classes)
    twin = SlowTokens([*tokens, b"", b"", b""], 4, {**classes, "<t>": [5], "<i>": [6]}, rules)
    check_grammar(automaton, twin, rules["s"])


def check_grammar(automaton: TokenAutomaton, twin: SlowTokens, start: Expr) -> None:
    """Which sequences of a few tokens are accepted, and that masks hold each that leads on and none that does not."""
    ids = [token for token in range(len(twin.tokens)) if token != twin.eos]
    longest = 3 if len(ids) > 6 else 4
    words = twin.language(start, longest)
    assert words
    prefixes = {word[:k] for word in words for k in range(len(word) + 1)}
    matcher = automaton.matcher()

    def visit(prefix: tuple[int, ...]) -> None:
        allowed = mask(matcher, len(automaton.vocabulary))
        assert matcher.is_accepting() == (prefix in words), prefix
        assert (twin.eos in allowed) == (prefix in words)
        for token in ids:
            if (*prefix, token) in prefixes:
                assert token in allowed, (prefix, token)
            assert matcher.accept_token(token) == (token in allowed), (prefix, token)
            if token not in allowed:
                continue
            assert completes(), (prefix, token)
            if len(prefix) + 1 < longest:
                visit((*prefix, token))
            matcher.rollback(1)

    def completes() -> bool:
        """Heading for the end by distances, tokens lead to acceptance."""
        fork = matcher.fork()
        fork.max_tokens_left = bound = fork.distance()
        for _ in range(bound):
            if fork.is_accepting():
                return True
            allowed = mask(fork, len(automaton.vocabulary)) - {twin.eos}
            if not allowed or not fork.accept_token(min(allowed)):
                return False
        return fork.is_accepting()

    visit(())


@pytest.mark.parametrize("seed", range(120))
def test_where_every_byte_is_a_token(seed: int) -> None:
    """There masks come from rows of classes and from fragments; ``narrow`` 0 asks for these at once."""
    rng = random.Random(seed)
    twin = SlowTokens(TOKENS, EOS, NAMES)
    expr = random_expr(rng, rng.choice([2, 3]), among=["concat", "concat", "union", "repeat", "without"])
    if not twin.language(expr, 3):
        return
    program = linearize(expr)
    classes = find_classes(program.token_names, COMPLETE, CLASSES)
    for narrow in (0, 192):
        native = _native.TokenAutomaton.compose(
            program.native(classes.rows),
            *(COMPLETE.native, 1_000_000, 1 << 30, 60.0, narrow),
            symbols=classes.symbols,
        )
        check_grammar(TokenAutomaton(native, COMPLETE, "random", Budget()), twin, expr)


def test_groups_of_the_paper() -> None:
    pattern = r"Summary:(\n\* (?P<PARAGRAPH_TOKEN>)+){1,2}"
    automaton = tokenfst.compile(regex(pattern), COMPLETE)
    ids = {COMPLETE.tokens[token]: token for token in range(len(COMPLETE)) if COMPLETE.tokens[token]}

    def spelled(text: bytes) -> list[int]:
        return [ids[bytes([byte])] for byte in text]

    matcher = automaton.matcher()
    assert matcher.forced_bytes() == b"Summary:\n* "
    assert matcher.accept_tokens(spelled(b"Summary:\n* a"))
    # A token with a line break is neither the next item, which begins with one, nor part of a paragraph.
    assert not matcher.accept_token(ids[b"ba\n"])
    assert matcher.accept_tokens(spelled(b"b\n* x"))
    assert not matcher.accept_token(ids[b"\n"])
    assert matcher.is_accepting()
    image = tokenfst.compile(regex(r"a(?P<IMAGE>)b"), COMPLETE, token_classes={"IMAGE": [7, 8]})
    assert image.matcher().accept_tokens([0, 8, 1, EOS])
    assert not image.matcher().accept_tokens([2])


def test_exact_where_ways_overlap() -> None:
    """Preferring ordinary edges loses "a·a·b" here: after the ordinary "a" the text could only go on with "c"."""
    vocabulary = Vocabulary([b"a", b"b", b"c", b""], 3)
    automaton = tokenfst.compile(regex(r"ac|(?P<TEXT_TOKEN>){2}b"), vocabulary)
    assert automaton.matcher().accept_tokens([0, 0, 1, 3])
    assert automaton.matcher().accept_tokens([0, 2, 3])
    assert automaton.matcher().accept_tokens([0, 2, 1, 3])


def test_counting_tokens() -> None:
    short = one_token().repeat(1, 2) & regex("[ab]*")
    matcher = compiled(short).matcher()
    assert matcher.accept_tokens([2, 5])
    assert mask(matcher, len(TOKENS)) == {EOS}


def test_a_token_of_a_language() -> None:
    matcher = compiled(one_token(regex("a|ab")) + regex("b")).matcher()
    assert mask(matcher, len(TOKENS)) == {0, 2, 5}
    assert matcher.accept_tokens([2, 1])
    with pytest.raises(EmptyLanguageError, match="no token sequence"):
        compiled(one_token(regex("aa")))
    with pytest.raises(EmptyLanguageError, match="empty word"):
        one_token(regex(""))


def test_special_tokens_are_not_their_spelling() -> None:
    vocabulary = Vocabulary([b"<", b"t", b">", b"", b""], 3, {"<t>": 4})
    assert tokenfst.compile(special_token("<t>"), vocabulary).matcher().accept_tokens([4, 3])
    assert not tokenfst.compile(special_token("<t>"), vocabulary).matcher().accept_tokens([0, 1, 2])
    assert not tokenfst.compile(regex("<t>"), vocabulary).matcher().accept_token(4)


def test_beside_text_fragments_and_masks() -> None:
    """A special token after a wide loop, whose mask comes from a fragment."""
    automaton = compiled(regex(rb"[^b]*") + special_token("<t>") + regex("b"), COMPLETE)
    matcher = automaton.matcher()
    allowed = mask(matcher, len(COMPLETE))
    wanted = {t for t, text in enumerate(COMPLETE.tokens) if text and b"b" not in text} | {7}
    assert allowed == wanted
    assert automaton.stats().fragments == 1
    assert matcher.accept_token(7)
    assert mask(matcher, len(COMPLETE)) == {1}


def test_forced_bytes_over_all_ways_to_cut() -> None:
    assert compiled(one_token(regex("ab")) + regex("a")).matcher().forced_bytes() == b"aba"
    assert compiled(regex("a") + special_token("<t>")).matcher().forced_bytes() == b"a"
    assert compiled(one_token() & regex("ab*")).matcher().forced_bytes() == b"a"


def test_draft_trees() -> None:
    automaton = compiled(regex("a") + token_class("AB") + special_token("<i>"))
    rows = tokenfst.allocate_token_bitmask(4, len(TOKENS))
    first, second = np.array([1, 2, 3, -1]), np.array([-1, -1, -1, -1])
    automaton.matcher().traverse_draft_tree(first, second, np.array([0, 0, 5, 8]), rows)
    bits = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")[:, : len(TOKENS)]
    assert [np.flatnonzero(row).tolist() for row in bits] == [[0], [2, 5], [8], [EOS]]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (
            lambda: special_token("<x>"),
            VocabularyMismatchError,
            "no special token '<x>'; it knows '<i>', '<t>'",
        ),
        (lambda: token_class("X"), VocabularyMismatchError, "nobody said which tokens"),
        (lambda: ~one_token(), ConstraintError, "a complement"),
        (lambda: regex("a*") - special_token("<t>"), ConstraintError, "a complement"),
        (lambda: regex(r"(?!(?P<TEXT_TOKEN>))a"), ConstraintError, "look-ahead"),
        (lambda: regex(r"(?P<TEXT_TOKEN>)(?<=a)b"), ConstraintError, "look-behind"),
        (lambda: regex(r"(?P<IMAGE>)$"), UnsupportedPatternError, "beside IMAGE"),
        (lambda: regex(r"(?P<IMAGE>a)"), PatternSyntaxError, "takes nothing"),
        (lambda: tokenfst.unordered([one_token(), regex("a")]), ConstraintError, "constrains tokens"),
        (lambda: one_token(one_token()), ConstraintError, "constrains tokens"),
        (lambda: token_class(""), ConstraintError, "not empty"),
    ],
)
def test_refused(make: object, error: type[Exception], match: str) -> None:
    assert callable(make)
    with pytest.raises(error, match=match):
        compiled(make())


@pytest.mark.parametrize(
    ("ids", "error", "match"),
    [
        ([], ConstraintError, "is empty"),
        ([EOS], ConstraintError, "end token"),
        ([2], ConstraintError, "token 5, which has the same bytes"),
        ([99], TokenIdError, "99"),
    ],
)
def test_refused_classes(ids: list[int], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        tokenfst.compile(token_class("X"), SMALL, token_classes={"X": ids})


def test_questions_need_a_vocabulary() -> None:
    language = one_token() + special_token("<t>")
    for ask in (language.is_empty, language.witness, language.determinize, lambda: language.accepts("a")):
        with pytest.raises(ConstraintError, match=r"only a vocabulary defines"):
            ask()
    with pytest.raises(ConstraintError, match="only a vocabulary defines"):
        Grammar(RULES["specials"], "s").accepts("ab")


def test_refused_where_text_begins_in_its_own_way() -> None:
    vocabulary = Vocabulary([b" a", b"b", b"", b""], 2, {"<t>": 3}, initial_tokens=[b"a", b"b", b"", b""])
    with pytest.raises(ConstraintError, match="may come first"):
        tokenfst.compile(special_token("<t>"), vocabulary)
    assert tokenfst.compile(regex("a") + special_token("<t>"), vocabulary).matcher().accept_tokens([0, 3, 2])
    with pytest.raises(VocabularyMismatchError, match="in another way"):
        tokenfst.compile(regex("b") + token_class("A"), vocabulary, token_classes={"A": [0]})


def test_canonical_tokenization_is_refused() -> None:
    with pytest.raises(ConstraintError, match="constrains tokens itself"):
        tokenfst.compile(one_token(), COMPLETE, tokenization="canonical")


def test_grammars_with_stacks_have_no_artifact() -> None:
    automaton = compiled(Grammar(RULES["specials"], "s"), COMPLETE)
    with pytest.raises(ConstraintError, match=r"truncate\(depth\)"):
        automaton.expand()
    cut = compiled(Grammar(RULES["specials"], "s").truncate(1), COMPLETE)
    assert cut.expand().matcher().accept_tokens([7, 2, 8])


def test_too_many_kinds_of_special_tokens() -> None:
    names = {f"<{k}>": k + 2 for k in range(65)}
    vocabulary = Vocabulary([b"a", b"", *[b""] * 65], 1, names)
    with pytest.raises(ConstraintError, match="64 are the most"):
        tokenfst.compile(Language.union_of(special_token(name) for name in names), vocabulary)
    few = Language.union_of(special_token(name) for name in list(names)[:64])
    assert len(mask(tokenfst.compile(few, vocabulary).matcher(), len(vocabulary))) == 64
