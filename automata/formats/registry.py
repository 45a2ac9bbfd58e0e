"""The values of JSON Schema's ``format`` as languages of string contents, in UTF-8.

``FORMATS`` lists every format of draft 2020-12 (validation, section 7.3): the document that defines it, the decision of
doubtful cases, and the words that are missing. ``format_language(name)`` is the language, built on first use.

Invariant: a language has valid words only. ``Format.missing`` is empty if the language has all valid words; otherwise
it describes the missing ones, so that a front end can refuse or report them. Such a language must not be complemented;
``outer_language``, if there is one, has all valid words, so a text outside of it is certainly invalid. A format is
``refused``, with the reason, if no automaton of usable size approximates it. A name that is not listed is not a
standard format, and the specification says that it asserts nothing.

Cost: 0.3 to 2.5 ms for a language and its first state (30 ms for ``regex``, 5 ms with letters beyond ASCII); further
states are built on demand. ``tests/automata/formats/test_formats.py`` has the total numbers.

Rejected: names outside of the standard (``url``, ``int32``, ``byte``, ...). Schemas give them different meanings, and
the specification makes them annotations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tokenfst.automata.formats import host as formats_host
from tokenfst.automata.formats import mail as formats_mail
from tokenfst.automata.formats import pattern as formats_regex
from tokenfst.automata.formats import time as formats_time
from tokenfst.automata.formats import uri as formats_uri
from tokenfst.automata.languages.emptiness import record_word
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex

_POINTER = r"(?s:/(?:[^/~]|~[01])*)*"
_INTEGER = r"(?:0|[1-9][0-9]*)"


def _uuid() -> Language:
    return regex("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def _json_pointer() -> Language:
    return regex(_POINTER)


def _relative_json_pointer() -> Language:
    return regex(rf"{_INTEGER}(?:#|(?:[+-]{_INTEGER})?{_POINTER})")


@dataclass(frozen=True, slots=True)
class Format:
    """One format of JSON Schema: its name, its language, and what the language lacks."""

    name: str
    reference: str
    """The document and the section that define the format."""
    note: str
    """How doubtful cases are decided, where readers of that document differ."""
    build: Callable[[], Language] | None
    """Builds the format's language; ``None`` if the format is refused."""
    missing: str = ""
    """A description of the valid words that the language lacks; empty if it lacks none."""
    refused: str = ""
    """Why the format has no language; empty if it has one."""
    outer: Callable[[], Language] | None = None
    """Builds a language with all valid words and few others, for complements; ``None`` if no words are missing, or if
    there is no such language.
    """


_A_LABELS = "names with A-labels (xn--...): whether one decodes to a valid label is beyond finite memory"

FORMATS: tuple[Format, ...] = (
    Format(
        "date-time",
        "RFC 3339, section 5.6",
        "T and Z in either case; leap seconds at the end of June and December in UTC",
        formats_time.date_time,
    ),
    Format(
        "date",
        "RFC 3339, section 5.6",
        "days per month and Gregorian leap years, years 0000 to 9999",
        formats_time.date,
    ),
    Format(
        "time",
        "RFC 3339, section 5.6",
        "an offset is required; second 60 only where time and offset make it 23:59 UTC",
        formats_time.time,
    ),
    Format(
        "duration",
        "RFC 3339, appendix A",
        "letters in either case, as in all ABNF; no fractions, and no unit is skipped",
        formats_time.duration,
    ),
    Format(
        "email",
        "RFC 5321, section 4.1.2",
        "quoted local parts and address literals; no limits on lengths, since Mailbox has none",
        formats_mail.email,
    ),
    Format(
        "idn-email",
        "RFC 6531, section 3.3",
        "every character beyond ASCII is a letter, in domains too",
        formats_mail.idn_email,
    ),
    Format(
        "hostname",
        "RFC 1123, section 2.1",
        "labels of at most 63 characters, names of at most 253, no trailing dot",
        formats_host.hostname,
        missing=_A_LABELS,
        outer=formats_host.hostname_or_a_labels,
    ),
    Format(
        "idn-hostname",
        "RFC 5890, section 2.3.2.3",
        "",
        None,
        refused="whether a label's A-label is within 63 octets, and whether an A-label decodes, depend on Punycode "
        "(RFC 3492), which orders all of a label's characters: beyond finite memory",
    ),
    Format("ipv4", "RFC 2673, section 3.2", "four decimal numbers without leading zeros", formats_host.ipv4),
    Format(
        "ipv6",
        "RFC 4291, section 2.2",
        "with :: for one group or more and with a dotted tail; no zone, no prefix length",
        formats_host.ipv6,
    ),
    Format("uri", "RFC 3986", "with a scheme", formats_uri.uri),
    Format("uri-reference", "RFC 3986, section 4.1", "", formats_uri.uri_reference),
    Format("iri", "RFC 3987", "with a scheme", formats_uri.iri),
    Format("iri-reference", "RFC 3987, section 2.2", "", formats_uri.iri_reference),
    Format("uuid", "RFC 4122, section 3", "any version and variant, digits in either case", _uuid),
    Format(
        "uri-template",
        "RFC 6570, section 2",
        "all four levels; operators reserved for extensions; the apostrophe is a literal (erratum 6937)",
        formats_uri.uri_template,
    ),
    Format("json-pointer", "RFC 6901, section 3", "", _json_pointer),
    Format(
        "relative-json-pointer",
        "draft-bhutton-relative-json-pointer-00, section 3",
        "with index manipulation (1+2/a)",
        _relative_json_pointer,
    ),
    Format(
        "regex",
        "ECMA-262, section 22.2.1",
        "valid with and without the u flag",
        formats_regex.ecma_regex,
        missing="patterns nested more than three deep, with two named groups, or with numbered references; "
        "ranges and counts whose order is decided late",
    ),
)

_BY_NAME = {each.name: each for each in FORMATS}


def find_format(name: str) -> Format | None:
    """The entry of ``FORMATS`` for ``name``; ``None`` if the standard has no such format."""
    return _BY_NAME.get(name)


@cache
def format_language(name: str) -> Language | None:
    """The language of the string contents that ``{"format": name}`` allows; equal names return the same object.

    ``None`` for a refused format and for an unknown name (``find_format`` tells them apart).
    """
    known = find_format(name)
    if known is None or known.build is None:
        return None
    language = Language(known.build().expr, f"format({name!r})")
    record_word(language.expr)  # each has, or it would be none
    return language


@cache
def outer_language(name: str) -> Language | None:
    """A language with all valid words of a format, and few others; equal names return the same object.

    ``None`` if the format's own language lacks no words, or if there is no such language.
    """
    known = find_format(name)
    if known is None or known.outer is None:
        return None
    language = Language(known.outer().expr, f"format({name!r}) and A-labels")
    record_word(language.expr)
    return language
