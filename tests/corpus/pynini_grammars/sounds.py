"""German spelling to sounds: ordered rules in context over UTF-8 letters, and a lexicon of exceptions."""

import functools

import pynini
from pynini.lib import pynutil, rewrite

with pynini.default_token_type("utf8"):
    vowels = pynini.union("a", "e", "i", "o", "u", "ä", "ö", "ü").optimize()
    consonants = pynini.union(*"bcdfghjklmnpqrstvwxzß").optimize()
    sounds = pynini.union("ʃ", "ç", "ŋ", "ɐ", "ə", "ː", "ɔ", "ɛ", "ʏ", "œ", "ɪ", "ʊ", "x").optimize()
    sigma_star = pynini.closure(vowels | consonants | sounds | "y").optimize()

    def rule(tau, left="", right="", **options):
        """A rule over all letters and sounds."""
        return pynini.cdrewrite(tau, left, right, sigma_star, **options).optimize()

    front = pynini.union("e", "i", "ä", "ö", "ü")
    voiced = pynini.string_map([("b", "p"), ("d", "t"), ("g", "k")])
    rules = [
        rule(pynini.cross("sch", "ʃ")),
        rule(pynini.cross("s", "ʃ"), "[BOS]", pynini.union("p", "t")),
        rule(pynini.cross("ch", "ç"), pynini.union(front, consonants)),
        rule(pynini.cross("ch", "x"), pynini.union("a", "o", "u")),
        rule(pynini.cross("ng", "ŋ"), "", pynini.union(consonants, "[EOS]", "e")),
        rule(pynini.string_map([("ei", "aɪ"), ("au", "aʊ"), ("äu", "ɔʏ"), ("eu", "ɔʏ"), ("ie", "iː")])),
        rule(pynini.cross("z", "ts") | pynini.cross("v", "f") | pynini.cross("w", "v")),
        rule(voiced, "", pynini.union("[EOS]", "s[EOS]", "t[EOS]"), direction="sim"),
        rule(pynini.cross("er", "ɐ") | pynini.cross("e", "ə"), consonants, "[EOS]"),
        rule(pynini.cross("ß", "s")),
        rule(pynutil.insert("ː"), vowels, consonants + vowels, direction="rtl"),
    ]
    cascade = functools.reduce(lambda one, other: (one @ other).optimize(), rules)
    lexicon = pynini.string_map(
        [("chef", "ʃɛf"), ("vase", "vaːzə"), ("tag", "taːk", "0.1"), ("tag", "tak", "0.7")]
    )
    known = pynini.project(lexicon.copy(), "input").optimize()
    known = pynini.arcmap(known, map_type="rmweight").rmepsilon()
    known = pynini.determinize(known).minimize()
    unknown = pynutil.add_weight(((sigma_star - known) @ cascade), 2)
    G2P = pynini.union(lexicon, unknown).optimize()
    optional = rule(pynini.cross("r", "ɐ"), vowels, consonants, mode="opt")


def say(word):
    """The best pronunciation."""
    return rewrite.top_rewrite(word, G2P, input_token_type="utf8", output_token_type="utf8")


def say_all(word):
    """All pronunciations."""
    found = rewrite.rewrites(word, G2P, input_token_type="utf8", output_token_type="utf8")
    return sorted(found)


def variants(word):
    """With an optional rule."""
    with pynini.default_token_type("utf8"):
        return sorted((word @ optional).paths().ostrings())


def spell(sounds_):
    """The spellings that sound so, the ones with the least weight."""
    found = rewrite.optimal_rewrites(
        sounds_, pynini.invert(G2P), input_token_type="utf8", output_token_type="utf8"
    )
    return sorted(found)[:10]
