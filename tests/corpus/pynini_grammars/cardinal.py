"""Cardinal numbers between digits and words, both ways, in the manner of grammars for text normalization."""

import string

import pynini
from pynini.export import export
from pynini.lib import byte, pynutil, rewrite, utf8

DIGIT = byte.DIGIT
NOT_QUOTE = pynini.difference(utf8.VALID_UTF8_CHAR, pynini.accep('"')).optimize()
SPACE = pynini.accep(" ")
SIGMA = pynini.closure(utf8.VALID_UTF8_CHAR).optimize()

digit = pynini.string_map(
    [
        ("1", "one"),
        ("2", "two"),
        ("3", "three"),
        ("4", "four"),
        ("5", "five"),
        ("6", "six"),
        ("7", "seven"),
        ("8", "eight"),
        ("9", "nine"),
    ]
)
teen = pynini.string_map(
    [
        ("10", "ten"),
        ("11", "eleven"),
        ("12", "twelve"),
        ("13", "thirteen"),
        ("14", "fourteen"),
        ("15", "fifteen"),
        ("16", "sixteen"),
        ("17", "seventeen"),
        ("18", "eighteen"),
        ("19", "nineteen"),
    ]
)
ties = pynini.string_map(
    [
        ("2", "twenty"),
        ("3", "thirty"),
        ("4", "forty"),
        ("5", "fifty"),
        ("6", "sixty"),
        ("7", "seventy"),
        ("8", "eighty"),
        ("9", "ninety"),
    ]
)
zero = pynini.cross("0", "zero")
dash = pynutil.insert(pynini.union("-", pynutil.add_weight(pynini.accep(" "), 0.1)))
two_digits = (
    teen | ties + pynutil.delete("0") | ties + dash + digit | pynutil.delete("0") + digit
).optimize()
hundred = pynutil.insert(" hundred")
joint = pynini.union(pynutil.insert(" "), pynutil.add_weight(pynutil.insert(" and "), 0.5))
three_digits = pynini.union(
    digit + hundred + pynutil.delete("00"),
    digit + hundred + joint + two_digits,
    pynutil.delete("0") + two_digits,
).optimize()
thousands = pynini.union(
    three_digits + pynutil.insert(" thousand") + (pynutil.delete("000") | pynutil.insert(" ") + three_digits),
    pynutil.delete("000") + three_digits,
).optimize()
pad = pynini.closure(pynutil.insert("0"), 0, 5)
to_six = (pad + DIGIT.plus) @ (DIGIT**6)
commas = pynini.cdrewrite(pynutil.delete(","), DIGIT, DIGIT**3, pynini.closure(DIGIT | pynini.accep(",")))
no_leading = pynini.union(DIGIT, (DIGIT - "0") + DIGIT.plus).optimize()
graph = (commas @ no_leading @ pynini.union(zero, to_six @ thousands)).optimize()
negative = pynini.closure(pynini.cross("-", "minus "), 0, 1)
CARDINAL = (negative + graph).optimize()
INVERSE = pynini.invert(CARDINAL).optimize()

tagged = (
    pynutil.insert("cardinal { ")
    + pynini.closure(pynutil.insert("negative: ") + pynini.cross("-", '"true" '), 0, 1)
    + pynutil.insert('integer: "')
    + graph
    + pynutil.insert('" }')
).optimize()
verbalizer = (
    pynutil.delete("cardinal { ")
    + pynini.closure(pynutil.delete("negative: ") + pynini.cross('"true" ', "minus "), 0, 1)
    + pynutil.delete('integer: "')
    + pynini.closure(NOT_QUOTE, 1)
    + pynutil.delete('" }')
).optimize()

word = pynutil.add_weight(pynini.closure(pynini.union(*string.ascii_letters), 1), 100)
token = pynutil.insert("<") + pynini.union(pynutil.add_weight(CARDINAL, 1.1), word) + pynutil.insert(">")
SENTENCE = (token + pynini.closure(SPACE + token)).optimize()


def normalize(text):
    """The best reading of a number."""
    return rewrite.top_rewrite(text, CARDINAL)


def readings(text):
    """All readings of a number, the best first."""
    return rewrite.top_rewrites(text, CARDINAL, 8)


def denormalize(text):
    """The digits of a number in words."""
    return rewrite.one_top_rewrite(text, INVERSE)


def tag(text):
    """What a classifier writes."""
    return rewrite.top_rewrite(pynini.escape(text), tagged)


def tag_and_verbalize(text):
    """Through both stages."""
    lattice = rewrite.rewrite_lattice(text, tagged)
    return rewrite.top_rewrite(lattice, verbalizer)


def sentence(text):
    """A sentence, word by word."""
    lattice = text @ SENTENCE
    best = pynini.shortestpath(lattice, nshortest=1, unique=True)
    return best.string()


def save(path):
    """An archive of the grammars."""
    exporter = export.Exporter(path)
    exporter["TAG"] = tagged
    exporter["CARDINAL"] = CARDINAL
    exporter.close()
