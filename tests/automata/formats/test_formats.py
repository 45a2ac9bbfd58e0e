"""Formats against the official suite, against the standard library, and against arithmetic over all times."""

from __future__ import annotations

import calendar
import datetime
import ipaddress
import itertools
import json
import random
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenfst.automata.formats.host import ipv4, ipv6
from tokenfst.automata.formats.registry import FORMATS, find_format, format_language, outer_language
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex

SUITE = Path(__file__).parents[4] / "shared/json-schema-test-suite/draft2020-12/optional/format"

SIZES = {
    "date-time": 19_935,
    "date": 29,
    "time": 11_057,
    "duration": 15,
    "email": 161,
    "idn-email": 182,
    "hostname": 41_453,
    "ipv4": 24,
    "ipv6": 151,
    "uri": 182,
    "uri-reference": 185,
    "iri": 261,
    "iri-reference": 277,
    "uuid": 37,
    "uri-template": 27,
    "json-pointer": 10,
    "relative-json-pointer": 16,
}
"""States of each deterministic automaton at most; ``regex`` takes too long to expand for a test."""


def language(name: str) -> Language:
    found = format_language(name)
    assert found is not None
    return found


def suite_cases() -> list[Any]:
    cases = []
    for path in sorted(SUITE.glob("*.json")):
        for group in json.loads(path.read_text()):
            texts = [(t["data"], t["valid"]) for t in group["tests"] if isinstance(t["data"], str)]
            case = (group["schema"]["format"], texts)
            cases.append(pytest.param(*case, id=f"{path.stem}: {group['description']}"))
    return cases


def is_missing(name: str, text: str) -> bool:
    """The only valid words of the suite that a language may leave out: host names with A-labels."""
    return name == "hostname" and any(label.lower().startswith("xn--") for label in text.split("."))


@pytest.mark.skipif(not SUITE.is_dir(), reason="the official suite is not beside this checkout")
@pytest.mark.parametrize(("name", "texts"), suite_cases())
def test_official_suite(name: str, texts: list[tuple[str, bool]]) -> None:
    known = find_format(name)
    if known is None or known.refused:
        assert name in ("idn-hostname", "unknown")
        assert format_language(name) is None
        return
    wrong = [(text, valid) for text, valid in texts if language(name).accepts(text) != valid]
    assert all(valid and is_missing(name, text) for text, valid in wrong), wrong


@pytest.mark.skipif(not SUITE.is_dir(), reason="the official suite is not beside this checkout")
def test_every_format_of_the_suite_is_listed() -> None:
    names = {case.values[0] for case in suite_cases()}
    assert {each.name for each in FORMATS} == names - {"unknown"}
    assert len(FORMATS) == 19


def test_entries_say_what_they_do() -> None:
    for each in FORMATS:
        assert each.reference
        assert (format_language(each.name) is None) == bool(each.refused)
        assert not (each.refused and each.missing)
    assert format_language("url") is None and find_format("url") is None
    assert format_language("date") is format_language("date")
    assert language("date").source == "format('date')"


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str) -> None:
    assert language(name).size().states <= SIZES[name]


# --- the calendar -------------------------------------------------------------------------------------


def test_every_day_of_the_calendar() -> None:
    """All years of one cycle of 400, with days 0 to 32 of months 0 to 13; other cycles at their leap years."""
    date = language("date")
    for year in (*range(1, 402, 7), 4, 100, 400, 1600, 1700, 1900, 2000, 2024, 2100, 9996, 9999):
        for month, day in itertools.product(range(14), range(33)):
            try:
                valid = bool(datetime.date(year, month, day))
            except ValueError:
                valid = False
            assert date.accepts(f"{year:04}-{month:02}-{day:02}") == valid, (year, month, day)


def test_every_leap_year() -> None:
    date = language("date")
    for year in range(10_000):
        assert date.accepts(f"{year:04}-02-29") == calendar.isleap(year), year
        assert date.accepts(f"{year:04}-02-28") and not date.accepts(f"{year:04}-02-30")


OFFSETS = ["Z", "z", *(f"{s}{h:02}:{m:02}" for s in "+-" for h in range(24) for m in (0, 1, 29, 30, 59))]


def minutes_of(offset: str) -> int:
    if offset in "Zz":
        return 0
    return int(offset[0] + "1") * (int(offset[1:3]) * 60 + int(offset[4:]))


def test_leap_second_of_every_minute_and_offset() -> None:
    time = language("time")
    for offset in OFFSETS:
        allowed = (23 * 60 + 59 + minutes_of(offset)) % (24 * 60)
        near = {allowed, (allowed + 1) % 1440, (allowed - 1) % 1440, (allowed + 60) % 1440, allowed // 2}
        for minute in near:
            text = f"{minute // 60:02}:{minute % 60:02}:60{offset}"
            assert time.accepts(text) == (minute == allowed), text


def test_leap_second_relation_is_complete() -> None:
    """Every local minute with every offset, by counting: one offset of each sign, and Z at 23:59."""
    leap = language("time") & regex("..:..:60(?:Z|[+-]..:..)")
    words = [f"{h:02}:{m:02}:60" for h in range(24) for m in range(60)]
    for word in words:
        found = [o for o in ("Z",) if leap.accepts(word + o)]
        minute = int(word[:2]) * 60 + int(word[3:5])
        ahead, back = (minute + 1) % 1440, 1439 - minute
        for sign, shift in (("+", ahead), ("-", back)):
            offset = f"{sign}{shift // 60:02}:{shift % 60:02}"
            assert leap.accepts(word + offset)
            after = leap.next_bytes(f"{word}{sign}".encode())[0]
            assert after == offset[1].encode()
            assert leap.next_bytes(f"{word}{offset[:2]}".encode())[0] == offset[2].encode()
            assert leap.next_bytes(f"{word}{offset[:-1]}".encode())[0] == offset[-1].encode()
        assert bool(found) == (minute == 1439)


@pytest.mark.parametrize("second", [0, 59, 60, 61])
def test_all_times_of_day(second: int) -> None:
    time = language("time")
    for hour, minute in itertools.product((*range(26), 99), (*range(0, 61, 5), 59, 61)):
        valid = hour < 24 and minute < 60 and (second < 60 or (second == 60 and (hour, minute) == (23, 59)))
        assert time.accepts(f"{hour:02}:{minute:02}:{second:02}Z") == valid


def test_leap_seconds_end_june_or_december_in_utc() -> None:
    date_time = language("date-time")
    start = datetime.datetime(2015, 1, 1, 23, 59)
    for day in range(366):
        utc = start + datetime.timedelta(days=day)
        for offset in ("Z", "+00:00", "-00:00", "+00:01", "+09:30", "+23:59", "-08:00", "-23:59"):
            local = utc + datetime.timedelta(minutes=minutes_of(offset))
            text = f"{local:%Y-%m-%dT%H:%M}:60.5{offset}"
            assert date_time.accepts(text) == ((utc.month, utc.day) in ((6, 30), (12, 31))), text


@settings(max_examples=200, deadline=None)
@given(st.datetimes(timezones=st.timezones()))
def test_python_datetimes(moment: datetime.datetime) -> None:
    offset = moment.utcoffset()
    if offset is None or offset.seconds % 60 or offset.microseconds:
        return
    assert language("date-time").accepts(moment.isoformat())
    assert language("date-time").accepts(moment.isoformat(timespec="milliseconds").replace("T", "t"))
    assert not language("date-time").accepts(moment.replace(tzinfo=None).isoformat())


# --- addresses ----------------------------------------------------------------------------------------


def accepted_by(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def accepts(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return accepts


def random_texts(alphabet: list[str], count: int, longest: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(alphabet, k=rng.randint(0, longest))) for _ in range(count)]


def test_ipv4_against_ipaddress() -> None:
    valid = accepted_by(ipaddress.IPv4Address)
    numbers = [str(n) for n in (*range(260), 999, 1000)] + ["00", "01", "001", "", "a", "٣"]
    texts = [f"1.2.{number}.4" for number in numbers] + [f"{number}.0.0.1" for number in numbers]
    texts += random_texts(["0", "1", "25", "255", "256", "9", ".", ".", "."], 4000, 8, 1)
    for text in texts:
        assert ipv4().accepts(text) == valid(text), text


def test_ipv6_against_ipaddress() -> None:
    parsed = accepted_by(ipaddress.IPv6Address)

    def valid(text: str) -> bool:
        return parsed(text) and "%" not in text  # Python takes zones (RFC 4007), the format does not.

    texts = random_texts(["0", "1f:", "ABCD:", "::", ":", "1.2.3.4", "12345", "g", "%1"], 8000, 11, 2)
    for before, after in itertools.product(range(10), repeat=2):
        for gap, tail in itertools.product((":", "::", ":::"), ("", "1.2.3.4", ":1.2.3.4")):
            texts.append(":".join(["f"] * before) + gap + ":".join(["0"] * after) + tail)
    assert sum(map(valid, texts)) > 150
    for text in texts:
        assert ipv6().accepts(text) == valid(text), text


def test_uuid_against_uuid() -> None:
    rng = random.Random(3)
    for _ in range(200):
        text = str(uuid.UUID(int=rng.getrandbits(128)))
        assert language("uuid").accepts(text) and language("uuid").accepts(text.upper())
        cut = rng.randrange(len(text))
        assert not language("uuid").accepts(text[:cut] + text[cut + 1 :])
        assert not language("uuid").accepts(text[:cut] + "g" + text[cut + 1 :])


def test_hostname_lengths() -> None:
    """The lengths of labels and of the whole, by brute force at the limits."""
    names = language("hostname")
    for length in range(1, 66):
        assert names.accepts("a" * length) == (length <= 63)
        assert names.accepts("a." + "-" * length + "b") is False
    for parts in ([63, 63, 63, 61], [63, 63, 63, 62], [1] * 127, [1] * 128, [63, 63, 63, 59, 1]):
        name = ".".join("a" * part for part in parts)
        assert names.accepts(name) == (len(name) <= 253)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text("aZ0-", min_size=0, max_size=5), min_size=1, max_size=4))
def test_hostname_labels(labels: list[str]) -> None:
    valid = all(re.fullmatch("[a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?", label) for label in labels)
    assert language("hostname").accepts(".".join(labels)) == valid


def test_what_surely_is_no_host_name() -> None:
    """The outer language has every word of the format, and names with any label after ``xn--`` beside them."""
    outer = outer_language("hostname")
    assert outer is not None and outer_language("hostname") is outer
    for text in ("a", "a.com", "xn--nxasmq6b", "xn--a.com", "a.XN--b", "xn--"[:3]):
        assert outer.accepts(text) is not text.endswith("-")
    for text in ("", "a b", "-a", "xn--a-", "a..b", "a" * 64, "a." * 126 + "xn"):
        assert not outer.accepts(text)
    assert outer.includes(language("hostname"))
    assert outer_language("regex") is None and outer_language("date") is None and outer_language("no") is None


def test_address_literals_of_mail() -> None:
    """RFC 5321 lets Snum have leading zeros and ``::`` stand for two groups at least."""
    mail = language("email")
    for literal, valid in {
        "127.000.00.1": True,
        "256.0.0.1": False,
        "0001.0.0.1": False,
        "IPv6:1:2:3:4:5:6:7:8": True,
        "ipv6:1:2:3:4:5:6:1.2.3.4": True,
        "IPv6:1:2:3:4:5:6::": True,
        "IPv6:1:2:3:4:5:6:7::": False,
        "IPv6:1:2:3:4::1.2.3.4": True,
        "IPv6:1:2:3:4:5::1.2.3.4": False,
        "IPv6:::": True,
        "::1": False,
        "Tag:content": False,
    }.items():
        assert mail.accepts(f"a@[{literal}]") == valid, literal


# --- algebra between formats --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("larger", "smaller"),
    [
        ("uri-reference", "uri"),
        ("iri-reference", "iri"),
        ("iri", "uri"),
        ("iri-reference", "uri-reference"),
        ("idn-email", "email"),
    ],
)
def test_inclusions(larger: str, smaller: str) -> None:
    assert language(larger).includes(language(smaller))
    assert not language(smaller).includes(language(larger))


def test_ascii_iris_are_uris() -> None:
    assert (language("iri") & regex(r"[\x00-\x7f]*")).equivalent(language("uri"))


def test_embedded_addresses() -> None:
    """A bracketed host is an IPv6 address exactly."""
    bracketed = language("uri") & regex(r"x://\[[^vV].*\]")
    expected = Language.literal("x://[") + ipv6() + Language.literal("]")
    assert bracketed.equivalent(expected)


def test_all_words_are_text() -> None:
    for name in (name for name in SIZES if SIZES[name] < 1000):
        assert Language.any_text().includes(language(name)), name


# --- patterns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "valid"),
    [
        (r"^[a-zA-Z_][a-zA-Z0-9_]*$", True),
        (r"^(?!.*(?:a|b)).*$", True),
        (r"^\d{4}-\d{2}(?:T(\d+|x{1,255}))?$", True),
        (r"[一-龥][\u4e00-\u9fa5][а-я][\--\]]", False),
        (r"[一-龥][\u4e00-\u9fa5][а-я]", True),
        (r"(?<n>a)\k<n>{2}", True),
        (r"(?<n>a)\k<m>", False),
        (r"\(?<m>(?<n>a)\k<m>", False),
        (r"(?<n>x)(?<n>y)", False),
        (r"\k<n>", False),
        (r"a{2,1}", False),
        (r"a{12,9}", False),
        (r"a{10,9999}", True),
        (r"[z-a]", False),
        (r"[a-\d]", False),
        (r"[^-a-]", True),
        (r"a**", False),
        (r"^*", False),
        (r"(?=a)*", False),
        (r"(((a)))", True),
        ("(a", False),
        ("a)", False),
        ("]", False),
        ("{", False),
        (r"\-", False),
        (r"[\-]", True),
        (r"\u{110000}", False),
        (r"\p{Lu}\P{Script=Greek}", True),
        (r"\p{Foo}", False),
    ],
)
def test_ecma_patterns(pattern: str, valid: bool) -> None:
    assert language("regex").accepts(pattern) == valid


def test_patterns_that_python_reads_alike() -> None:
    """Of random texts from pieces that mean the same in both dialects, those accepted compile in Python."""
    pieces = [
        "(?:",
        "(?=",
        "(?!",
        "{2}",
        "{1,3}",
        "{3,1}",
        "{2,}",
        "[a-c]",
        "[^c-a]",
        r"\d",
        *"ab()))|*+?]-^$",
    ]
    accepted = [text for text in random_texts(pieces, 6000, 7, 4) if language("regex").accepts(text)]
    for text in accepted:
        re.compile(text)
    assert len(accepted) > 300
