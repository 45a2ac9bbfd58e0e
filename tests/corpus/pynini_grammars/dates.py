"""Dates and years in text, in the manner of a verbalizer: alternatives with weights, and rules in context."""

import pynini
from pynini.lib import byte, pynutil, rewrite

SIGMA = pynini.closure(byte.BYTE).optimize()
months = pynini.string_map(
    [
        ["01", "january"],
        ["02", "february"],
        ["03", "march"],
        ["04", "april"],
        ["05", "may"],
        ["06", "june"],
        ["07", "july"],
        ["08", "august"],
        ["09", "september"],
        ["10", "october"],
        ["11", "november"],
        ["12", "december"],
    ]
)
abbreviated = pynini.string_map([("jan.", "january"), ("feb.", "february"), ("dec.", "december")])
ones = pynini.string_map(
    zip(
        "123456789",
        ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"],
        strict=True,
    )
)
teens = pynini.string_map(
    [
        (str(n + 10), w)
        for n, w in enumerate(["tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth"])
    ]
    + [
        (str(n), w)
        for n, w in ((16, "sixteenth"), (17, "seventeenth"), (18, "eighteenth"), (19, "nineteenth"))
    ]
)
tens = pynini.string_map([("20", "twentieth"), ("30", "thirtieth")])
day = pynini.union(
    pynutil.delete("0").ques + ones,
    teens,
    tens,
    pynini.cross("2", "twenty ") + ones,
    pynini.cross("31", "thirty first"),
).optimize()
cardinal_ones = pynini.string_map(
    zip("123456789", ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"], strict=True)
)
decades = pynini.string_map(
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
low = pynini.string_map(
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
two = pynini.union(low, decades + pynutil.delete("0"), decades + pynutil.insert(" ") + cardinal_ones)
year = pynini.union(
    pynutil.add_weight(two + pynutil.insert(" ") + two, 0.5),
    two + pynini.cross("00", " hundred"),
    two + pynini.cross("0", " oh ") + cardinal_ones,
    pynutil.add_weight(pynini.cross("200", "two thousand ") + cardinal_ones, -0.5),
    pynutil.add_weight(pynini.cross("2000", "two thousand"), -0.25),
).optimize()
of = pynini.union(pynutil.insert(" of "), pynutil.add_weight(pynutil.insert(" "), 0.25))
iso = (
    year
    + pynutil.insert("|")
    + pynutil.delete("-")
    + months
    + pynutil.delete("-")
    + pynutil.insert("|")
    + day
).optimize()
written = (
    pynutil.insert("the ")
    + day
    + pynutil.delete(pynini.union("st", "nd", "rd", "th")).ques
    + pynutil.delete(" ")
    + of
    + (abbreviated | pynini.project(months, "output"))
    + pynini.closure(pynutil.delete(pynini.accep(",").ques + " ") + pynutil.insert(", ") + year, 0, 1)
).optimize()
# A colon between digits is read as "past", and a number after "#" is spelled out.
clock = pynini.cdrewrite(pynini.cross(":", " past "), byte.DIGIT, byte.DIGIT**2, SIGMA)
hours = pynini.cdrewrite(pynini.cross("00", "o'clock"), "past ", pynini.union("[EOS]", byte.SPACE), SIGMA)
gaps = pynini.cdrewrite(pynini.cross(byte.SPACE.plus, " "), "", "", SIGMA)
ends = pynini.cdrewrite(pynutil.delete(byte.SPACE.plus), pynini.union("[BOS]"), "", SIGMA)
TIME = (gaps @ ends @ clock @ hours).optimize()


def read_iso(text):
    """A date such as 2009-03-21."""
    return rewrite.top_rewrite(text, iso)


def all_iso(text):
    """All readings of such a date."""
    return sorted(rewrite.rewrites(text, iso))


def best_iso(text):
    """The readings of the least weight."""
    return sorted(rewrite.optimal_rewrites(text, iso))


def read_written(text):
    """A date such as 3rd dec. 1999."""
    return rewrite.top_rewrite(text, written)


def read_time(text):
    """Times within a text."""
    return rewrite.one_top_rewrite(text, TIME)


def weights(text):
    """All readings with their weights, by the paths of the lattice."""
    lattice = pynini.compose(text, iso).project("output").rmepsilon()
    return sorted({(path, round(float(weight), 4)) for _, path, weight in lattice.paths().items()})


def says(text, reading):
    """Whether a text can be read so."""
    return rewrite.matches(text, reading, iso)
