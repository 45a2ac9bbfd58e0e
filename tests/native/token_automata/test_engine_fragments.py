"""On the real vocabulary: masks by fragments and residuals are the masks of whole walks, and the tokens bear it out."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest
from support.running.seeds import few_and_many_seeds, in_ranges

import tokenfst
from tests.support.worlds.token_worlds import allowed
from tokenfst import Vocabulary, _native
from tokenfst.automata.expressions.program import linearize

NO_FRAGMENTS = 0xFFFFFFFE
"""So many nodes of the trie are walked one by one: no fragment, and no sub-trie taken as a whole."""
STRING = r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*"'
PATTERNS = {
    "string": STRING,
    "two strings": rf"\{{{STRING}: {STRING}(, {STRING}: {STRING})*\}}",
    "counted string": r'"([^"\\\x00-\x1f]|\\["\\/bfnrt]){2,7}", "[^"]{0,40}"',
    "counted exactly": r"\[[^\]]{5}\] [a-z]{3}!",
    "ambiguous exits": r"[a-z ]*the [a-z]{2,9}\.",
    "counted without terminator": r"[a-z]{1,6}[a-z0-9]{2,4}",
    "any text": r"(?s:.*)END",
    "union of wide parts": r"([a-z]+|[^a-m\n]{3,}|[A-Z ]*x)\n",
    "intersection": r"(?=.*[0-9])(?=.*[A-Z])[!-~]{8,20}",
    "tempered": r"(?:(?!</b>)(?s:.))*</b>",
    "words": r"(\b\w+\b[ ,]?){1,5}",
    "unicode classes": r"[α-ωά-ώ]+( [а-я]{2,5})*",
    "all strings but words": rf'(?!"(?:alpha|all|a|the|Über|\\u0041)"){STRING}: [0-9]+',
    "words left out before the terminator": r'"(?!(?:name|names|na|id)")[^"\\]*": ([a-z]+|"[^"]*")',
    "words and a pattern left out": rf'(?!"(?:12|other)")(?!"[0-9a-f]){STRING},',
    "a pattern left out": rf'(?!"[m-p][a-z]*"){STRING}: (true|false)',
    "counted, words left out": r'"(?!(?:yes|no|)")[^"\\]{0,12}" [a-z]+',
    "names, or all others": rf'(("x": [0-9]+|"text": {STRING}|(?!"(?:x|text)"){STRING}: (true|null)),){{1,4}}',
    "words left out, or longer": r"(?!(?:the|then|of)$)[a-z ]*(\.|)",
    "after a space": r"( ?[a-z_]+ ?(=|<)( ?[0-9]+| '[^']*'))+",
    "after a space, counted": r"( [A-Za-z]{1,7},)+( the [a-z]{2,5}\.)?",
    "after a space, words left out": r"(?: (?!(?:and|or|the|select) )[a-z]* )+",
    "other words left out": r"(?![^a-z]*(?:and|or)[0-9])[^\n]*\n",
    "no white space": r"(?:\S+\s+){0,9}\S+",
    "no white space in a string": r'"(?=[^"]{0,60}")([^\s"\\]+\s+){0,29}[^\s"\\]*"',
    "words that count, to a byte": r'"(?:|(?:[^\s"]+\s+){0,40}[^\s"]+)", [a-z]+',
    "few words, to a byte": r'"(?:|(?:[^\s"]+\s+){0,9}[^\s"]+)"!',
    "groups of which tokens have many": r'"(?:[^"=]*)(?:[-=.]{1,2}){0,9}(?:[a-z][^"]*)?"',
    "words that count, and characters": r'"(?=[^"]{0,45}")(?:[^\s"]+ ){0,12}[^\s"]+"',
    "found somewhere": r'"[^"\\]*sound[^"\\]*": [0-9]+',
    "at least so many": r'"[^"\\]{11,}", "[^"\\]{2,}"',
    "all characters but one": r"[^é]*é[^a-f]*;",
    "characters of three bytes": r"[\u0800-\ud7ff\ue000-\uffff]+ [\U00010000-\U0010ffff]*",
    "all but some of three bytes": r'([^"\u4e00-\u9fff]|[.])*"',
    "letters and digits": r"[A-Za-z0-9_]+@[a-z0-9.-]+(/\w+)*",
    "hexadecimal letters, and one letter": r"([0-9a-f]+|[g-z]*m)[A-F]*([^e\n]*e[^\n]*)?\n",
    "letters told apart after a space": r"( [A-Z]?[b-z]*)+[aeiou]*[.;]",
    "crowded, and on to a byte": r'"[^"\s]*[a-z]+( [^"\s]*[0-9]+)?"',
    "crowded, and no byte to go on to": r"[^\s]*[a-z]+ ?[^\s]*[0-9]+",
    "separators before the last byte": r'"[a-z]+:(//([!$-~]*@)?([!$-~]*|\[[0-9a-f:]+\])(:[0-9]*)?)?'
    r'(/[!$-~]*)*(\?[!$-~]*)?(#[!$-~]*)?": [0-9]+',
    "many exits, and a separator": r'"([\da-z.-]+)\.([a-z.]{2,6})([/\w .-]*)*/?"(, [a-z]+)?',
    "separators on some ways": r'"([^"\s]*[A-Z]+-[^"]*|[^"]*[a-z]+ [^"\s]*(:[0-9]+)?|[0-9]{4})"( [a-z]+)*',
    "groups with a filler": r'"([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"[,}]',
    "ways that meet nowhere": r'([^"\s]*[A-Z]+-[^"]*"|[^\'\s]*[a-z]+ [^\']*\')[a-z]*',
}


def automata(pattern: str, vocabulary: Vocabulary) -> list[_native.TokenAutomaton]:
    program = linearize(tokenfst.regex(pattern).expr).native()
    return [
        _native.TokenAutomaton.compose(program, vocabulary.native, 1_000_000, 1 << 31, 60.0, narrow)
        for narrow in (NO_FRAGMENTS, 192, 0)
    ]


def step_alike(rng: random.Random, matchers: list[_native.Matcher], vocabulary: Vocabulary) -> bool:
    """Let matchers with equal masks take the same token, by chance. Whether any but an end token may come."""
    masks = [allowed(matcher, len(vocabulary)) for matcher in matchers]
    assert masks[0] == masks[1] == masks[2]
    choices = sorted(masks[0] - set(vocabulary.eos_token_ids))
    if not choices:
        return False
    token = rng.choice(choices)
    assert all(matcher.accept_token(token) for matcher in matchers)
    return True


@pytest.mark.parametrize("name", PATTERNS)
def test_masks_by_fragments_equal_whole_walks(name: str, tekken: Vocabulary) -> None:
    rng = random.Random(name)
    built = automata(PATTERNS[name], tekken)
    for _ in range(3):
        matchers = [_native.Matcher(automaton) for automaton in built]
        for _ in range(12):
            if not step_alike(rng, matchers, tekken):
                break


@pytest.mark.parametrize("name", PATTERNS)
def test_masks_equal_single_tokens_tried_one_by_one(name: str, tekken: Vocabulary) -> None:
    """Brute force over every token at a few states: the bytes are run through the byte automaton by hand."""
    rng = random.Random(name)
    language = tokenfst.regex(PATTERNS[name])
    bytes_of = _native.ByteAutomaton(linearize(language.expr).native(), 1_000_000, 1 << 31, 60.0)
    matcher = tokenfst.compile(language, tekken).matcher()
    for _ in range(3):
        text = tekken.decode(matcher.tokens)
        mask = allowed(matcher, len(tekken))
        sample = rng.sample(range(len(tekken)), 3000) + rng.sample(sorted(mask), min(300, len(mask)))
        for token in sample:
            if token in tekken.special_token_ids:
                assert (token in mask) == (token in tekken.eos_token_ids and bytes_of.accepts(text))
            else:
                longer = text + tekken.tokens[token]
                assert (token in mask) == (bytes_of.viable_prefix(longer) == len(longer))
        choices = sorted(mask - set(tekken.eos_token_ids))
        if not choices:
            break
        matcher.accept_token(rng.choice(choices))


@pytest.mark.parametrize(
    "name", ["two strings", "counted string", "counted exactly", "ambiguous exits", "words"]
)
def test_distances_and_budgets_do_not_depend_on_fragments(name: str, tekken: Vocabulary) -> None:
    rng = random.Random(name)
    built = automata(PATTERNS[name], tekken)
    least = _native.Matcher(built[0]).distance()
    for extra in (0, 2):
        matchers = [_native.Matcher(automaton, least + extra) for automaton in built]
        while matchers[0].max_tokens_left:
            assert len({matcher.distance() for matcher in matchers}) == 1
            if not step_alike(rng, matchers, tekken):
                break
        assert matchers[0].is_accepting()


def test_fragments_are_shared_between_automata(tekken: Vocabulary) -> None:
    first = tokenfst.compile(tokenfst.regex(rf"A{STRING}"), tekken)
    other = tokenfst.compile(tokenfst.regex(rf"B{STRING}C"), tekken)
    mask = np.zeros((1, (len(tekken) + 31) // 32), np.int32)
    for automaton, start in ((first, 'A"'), (other, 'B"')):
        matcher = automaton.matcher()
        assert matcher.accept_tokens([tekken.ids(char.encode())[0] for char in start])
        matcher.fill_next_token_bitmask(mask)
    assert other.stats().fragments >= 1
    assert other.stats().dense_rows == 1


@pytest.mark.parametrize("high", [30, 90, 250])
def test_masks_of_a_pattern_and_a_length(high: int, tekken: Vocabulary) -> None:
    """Whether the upper bound is far away, so that the fragment leaves it out, or near: the masks of single steps."""
    content = tokenfst.regex(r"([a-zé]+[ ,]+){0,40}[a-zé]{2,}!") & tokenfst.regex(rf"(?s:.){{3,{high}}}")
    language = tokenfst.regex('"') + content + tokenfst.regex('": [0-9]+')
    program = linearize(language.expr).native()
    walked, split = (
        _native.TokenAutomaton.compose(program, tekken.native, 1_000_000, 1 << 31, 60.0, narrow)
        for narrow in (NO_FRAGMENTS, 0)
    )
    rng = random.Random(high)
    for _ in range(2):
        matchers = [_native.Matcher(walked), _native.Matcher(split)]
        for _ in range(20):
            expected = allowed(matchers[0], len(tekken))
            assert allowed(matchers[1], len(tekken)) == expected
            if not expected - set(tekken.eos_token_ids):
                break
            token = rng.choice(sorted(expected - set(tekken.eos_token_ids)))
            assert all(matcher.accept_token(token) for matcher in matchers)
    assert split.stats["fragments"] > 0


def test_a_search_for_a_word_goes_to_the_nearest_end() -> None:
    """Length by length, 2**12 states would be met before a word: what is left of all that a place may be at."""
    both = tokenfst.regex("[ab]*a[ab]{12}") & tokenfst.regex("[ab]{24}")
    bytes_of = _native.ByteAutomaton(linearize(both.expr).native(), 1_000, 1 << 31, 60.0)
    assert bytes_of.viable_prefix(b"bbbbbc") == 5


SMALL_TOKENS = [bytes([byte]) for byte in range(256)]  # shortcuts need all bytes
SMALL_TOKENS += ["".join(chars).encode() for n in (2, 3) for chars in itertools.product('ab";', repeat=n)]
SMALL_WHOLES = ['[ab]*"', '"[ab]*"', "[ab]*", '[ab]{0,4}"', '(a|bb?)*"', "[^;]*;", '(?=.*a.*)[ab]*"']
SMALL_RESTS = ["", ";", '("|;)*', "a?;b*", '[ab]*"']


@pytest.mark.parametrize("whole", SMALL_WHOLES)
def test_parts_of_fragments_on_small_worlds(whole: str) -> None:
    """A loop without some words, and what follows: wherever three tokens lead, the masks are those of walks."""
    vocabulary = Vocabulary([*SMALL_TOKENS, b""], eos_token_id=len(SMALL_TOKENS))
    letters = {k for k, text in enumerate(SMALL_TOKENS) if set(text) <= set(b'ab";')}
    rng = random.Random(whole)
    for rest in SMALL_RESTS:
        alphabet = sorted({char for char in whole if char in 'ab";'})
        words = {"".join(rng.choices(alphabet, k=rng.randint(0, 4))) for _ in range(3)}
        words |= {f"{word}{whole[-1]}" for word in words if whole[-1] in '";'}
        left_out = tokenfst.regex("|".join(re.escape(word) for word in sorted(words)))
        part = (tokenfst.regex(whole) - left_out) + tokenfst.regex(rest)
        other = tokenfst.regex(r'a";') if rest else tokenfst.regex("b+")
        for language in (
            part,
            part | other,
            (tokenfst.regex(whole) - left_out - tokenfst.regex("b.*")) + other,
        ):
            program = linearize(language.expr).native()
            walked, split = (
                _native.TokenAutomaton.compose(program, vocabulary.native, 100_000, 1 << 30, 60.0, narrow)
                for narrow in (NO_FRAGMENTS, 0)
            )
            pending, seen = [()], set()
            while pending:
                path = pending.pop()
                matchers = [_native.Matcher(walked), _native.Matcher(split)]
                assert all(matcher.accept_tokens(list(path)) for matcher in matchers)
                expected = allowed(matchers[0], len(vocabulary))
                assert allowed(matchers[1], len(vocabulary)) == expected, (language.source, path)
                for token in sorted(expected & letters) if len(path) < 3 else ():
                    text = b"".join(vocabulary.tokens[k] for k in (*path, token))
                    if text not in seen and len(text) <= 6:
                        seen.add(text)
                        pending.append((*path, token))


SEPARATED = ["[ab]*", "[ab;]*", "a+b?", "b*", "(ab|b)*", "[ab;]*a", "(;[ab]*)?", "(a|;b*)*", "a{0,3};", ""]


def separated(rng: random.Random, depth: int) -> str:
    """A pattern with separators on some of its paths."""
    if depth == 0:
        return rng.choice(SEPARATED)
    parts = [separated(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    kind = rng.random()
    if kind < 0.3:
        return "(" + "|".join(parts) + ")"
    return "".join(parts) if kind < 0.8 else "(" + "".join(parts) + ")?"


def check_along_random_tokens(
    rng: random.Random, language: tokenfst.Language, vocabulary: Vocabulary, few: int = 0
) -> _native.TokenAutomaton:
    """Wherever random tokens lead, masks by fragments are those of walks, and the tokens that are accepted.

    Returns the automaton with fragments, used where a walk of the vocabulary enters more than a few nodes.
    """
    program = linearize(language.expr).native()
    walked, split = (
        _native.TokenAutomaton.compose(program, vocabulary.native, 100_000, 1 << 30, 60.0, narrow)
        for narrow in (NO_FRAGMENTS, few)
    )
    for _ in range(3):
        matchers = [_native.Matcher(walked), _native.Matcher(split)]
        for _ in range(6):
            expected = allowed(matchers[0], len(vocabulary))
            assert allowed(matchers[1], len(vocabulary)) == expected, (language.source, matchers[0].tokens)
            accepted = set()
            for token in range(len(vocabulary)):
                if matchers[1].accept_token(token):
                    accepted.add(token)
                    matchers[1].rollback(1)
            assert accepted == expected, (language.source, matchers[0].tokens)
            choices = sorted(expected - {len(SMALL_TOKENS)})
            if not choices:
                break
            token = rng.choice(choices)
            assert all(matcher.accept_token(token) for matcher in matchers)
    return split


def check_separated(seed: int) -> None:
    """Wherever random tokens lead, masks by fragments are those of walks, and the tokens that are accepted."""
    rng = random.Random(seed)
    vocabulary = Vocabulary([*SMALL_TOKENS, b""], eos_token_id=len(SMALL_TOKENS))
    texts = "|".join(
        separated(rng, 2) + rng.choice('";') + separated(rng, 1) for _ in range(rng.randint(1, 2))
    )
    pattern = f"({texts})" + rng.choice(['"', '";', '";?', ""]) + rng.choice(["", "[ab]*", ";b"])
    check_along_random_tokens(rng, tokenfst.regex(pattern), vocabulary)


@few_and_many_seeds(in_ranges(range(30), 1), in_ranges(range(1000, 11_000), 500))
def test_texts_with_separators(seeds: range) -> None:
    for seed in seeds:
        check_separated(seed)


QUOTED = ["[ab]*", "[ab;]*", "(ab|b)*", "a*b*", "[ab]*a", "(a|;b)*"]


def check_behind_letters(seed: int) -> int:
    """Texts between letters: a fragment may begin after the first of them. Returns the number of fragments."""
    rng = random.Random(seed)
    vocabulary = Vocabulary([*SMALL_TOKENS, b""], eos_token_id=len(SMALL_TOKENS))
    texts = [tokenfst.regex(rng.choice(QUOTED)) for _ in range(2)]
    if rng.random() < 0.4:
        words = ["".join(rng.choices("ab", k=2)) for _ in range(2)]
        texts[1] = texts[0] - tokenfst.regex("|".join(words))
    begin, end = (tokenfst.regex(rng.choice(['"', "a", "b;"])) for _ in range(2))
    parts = [tokenfst.regex(rng.choice(["", ";", "a", "ab"])) + begin + text + end for text in texts]
    more = tokenfst.regex(rng.choice(["b", ";a", ""])) | parts[1]
    language = parts[0] + more + parts[rng.randrange(2)]
    return int(check_along_random_tokens(rng, language, vocabulary, few=4).stats["fragments"])


@pytest.mark.parametrize("first", range(0, 120, 30))
def test_texts_behind_letters(first: int) -> None:
    fragments = [check_behind_letters(seed) for seed in range(first, first + 30)]
    assert sum(made > 2 for made in fragments) > 15


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 11000, 500))
def test_many_texts_behind_letters(seed: int) -> None:
    for each in range(seed, seed + 500):
        check_behind_letters(each)


def test_masks_of_a_text_with_separators_are_shared(tekken: Vocabulary) -> None:
    """The second automaton over a vocabulary makes few states: it does not walk the whole vocabulary."""
    text = 'x"https://'
    made = []
    for end in "AB":
        language = tokenfst.regex("x" + PATTERNS["separators before the last byte"] + end)
        automaton = tokenfst.compile(language, tekken)
        matcher = automaton.matcher()
        assert matcher.accept_tokens([tekken.ids(char.encode())[0] for char in text])
        before = automaton.stats().states
        allowed(matcher, len(tekken))
        made.append(automaton.stats().states - before)
    assert made[1] < 12


@pytest.mark.parametrize("rest", [";", '";', "[;b]a", "a?;", ""])
@pytest.mark.parametrize("whole", ['[ab]*[ab;"]', "[ab;]*[b;]", '"?[ab]*[b"]', "(a|bb)*[ab]"])
@pytest.mark.parametrize("word", ["b", "b;", "ab", "a;", "bb", '"b', "b[ab;]", "ab;"])
def test_words_left_out_of_which_a_part_is_a_text(whole: str, word: str, rest: str) -> None:
    """A token that is a word left out may also be a shorter text and the beginning of what follows."""
    vocabulary = Vocabulary([*SMALL_TOKENS, b""], eos_token_id=len(SMALL_TOKENS))
    language = (tokenfst.regex(whole) - tokenfst.regex(word)) + tokenfst.regex(rest)
    program = linearize(language.expr).native()
    walked, split = (
        _native.TokenAutomaton.compose(program, vocabulary.native, 100_000, 1 << 30, 60.0, narrow)
        for narrow in (NO_FRAGMENTS, 0)
    )
    for path in ([], [ord("a")], [ord("b")]):
        matchers = [_native.Matcher(walked), _native.Matcher(split)]
        if all(matcher.accept_tokens(path) for matcher in matchers):
            masks = [allowed(matcher, len(vocabulary)) for matcher in matchers]
            accepted = {token for token in range(len(vocabulary)) if matchers[0].fork().accept_token(token)}
            assert masks == [accepted, accepted]


def test_a_word_left_out_of_which_a_part_is_a_text(tekken: Vocabulary) -> None:
    language = (tokenfst.regex("[<=>!]*[<=>!-]") - tokenfst.regex("=-")) + tokenfst.regex("-?;")
    matcher = tokenfst.compile(language, tekken).matcher()
    token = tekken.tokens.index(b"=-")
    assert matcher.fork().accept_token(token)
    assert token in allowed(matcher, len(tekken))


def check_limits(
    automaton: _native.TokenAutomaton, vocabulary: Vocabulary, left: int, tokens: set[int]
) -> None:
    """Within a limit, of some tokens the mask allows those that are accepted."""
    matcher = _native.Matcher(automaton, left)
    mask = allowed(matcher, len(vocabulary))
    accepted = {token for token in tokens if matcher.fork().accept_token(token)}
    assert mask & tokens == accepted, (
        left,
        [vocabulary.tokens[token] for token in (mask & tokens) ^ accepted],
    )


@pytest.mark.parametrize(
    "pattern", ["[ab]*(a|cd?)", "[ab]*a?(a|cd?)", "[ab]*(a|cd?)!", "([ab]c)*([a]|dd?)", "[ab]*(b|cd?)a?"]
)
def test_limits_where_a_fragment_can_be_left_at_once(pattern: str) -> None:
    """Not every token that stays inside the loop is also one of what follows it, and so ends the text sooner."""
    vocabulary = Vocabulary([*SMALL_TOKENS[:256], b""], eos_token_id=256)
    program = linearize(tokenfst.regex(pattern).expr).native()
    split = _native.TokenAutomaton.compose(program, vocabulary.native, 100_000, 1 << 30, 60.0, 0)
    for left in range(_native.Matcher(split).distance(), 8):
        check_limits(split, vocabulary, left, set(range(257)))


@pytest.mark.parametrize(("letters", "left"), [(18, 3), (34, 4), (50, 5)])
def test_limits_where_words_can_be_left_at_once(letters: int, left: int, tekken: Vocabulary) -> None:
    automaton = tokenfst.compile(tokenfst.regex(f"( [a-z]{{{letters}}})*( a?|,)"), tekken)
    check_limits(
        automaton._native,
        tekken,
        left,
        {tekken.tokens.index(text) for text in (b" ", b" a", b" b", b" c", b" the", b",")},
    )


@pytest.mark.parametrize("high", range(3, 10))
@pytest.mark.parametrize("pattern", ["([ab]+;)*[ab]+", "[ab;]*aab", "(a|b;b)*"])
def test_upper_bounds_on_small_worlds(pattern: str, high: int) -> None:
    """A pattern and a length, where tokens have up to three bytes: wherever bytes lead, masks are those of walks."""
    vocabulary = Vocabulary([*SMALL_TOKENS, b""], eos_token_id=len(SMALL_TOKENS))
    language = (tokenfst.regex(pattern) & tokenfst.regex(f"[ab;]{{0,{high}}}")) + tokenfst.regex('";?')
    program = linearize(language.expr).native()
    walked, split = (
        _native.TokenAutomaton.compose(program, vocabulary.native, 100_000, 1 << 30, 60.0, narrow)
        for narrow in (NO_FRAGMENTS, 0)
    )
    pending = [b""]
    while pending:
        text = pending.pop()
        matchers = [_native.Matcher(walked), _native.Matcher(split)]
        assert all(matcher.accept_tokens(list(text)) for matcher in matchers)
        expected = allowed(matchers[0], len(vocabulary))
        assert allowed(matchers[1], len(vocabulary)) == expected, text
        if len(text) < 6:
            pending += [text + bytes([byte]) for byte in b'ab";' if byte in expected]
