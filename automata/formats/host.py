"""IP addresses and host names as languages; e-mail addresses and URIs use them.

The forms of IPv6 are enumerated: how many groups precede ``::`` and how many may follow. They share one node for a
group and one for the dotted tail. A host name is a list of labels intersected with a bound on its length: two counters,
whose product is built lazily.

A-labels: a label that begins with ``xn--`` is valid if the rest decodes (Punycode, RFC 3492) to a valid Unicode label.
Punycode inserts code points in ascending order at positions counted from the left, so an automaton that reads it would
have to store the decoded label; none of usable size exists. ``hostname`` is therefore *every host name without
A-labels*: it has no invalid word, but lacks those names. For complements, ``hostname_or_a_labels`` accepts any label
after ``xn--``, so its complement has no valid host name. Rejected: accepting every label that begins with ``xn--``,
which would accept host names that do not exist.
"""

from __future__ import annotations

from functools import cache

from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex

_OCTET = r"(?:[0-9]|[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_LABEL = r"[0-9A-Za-z](?:[0-9A-Za-z-]{0,61}[0-9A-Za-z])?"
_MAX_NAME = 253
_GROUPS = 8


@cache
def ipv4() -> Language:
    """Four decimal octets without leading zeros (RFC 3986 ``IPv4address``)."""
    return regex(rf"{_OCTET}(?:\.{_OCTET}){{3}}")


@cache
def ipv6() -> Language:
    """The three text forms of RFC 4291, section 2.2: full, with one ``::``, with a dotted tail; no zone."""
    return ipv6_forms(ipv4(), _GROUPS - 1)


def ipv6_forms(dotted: Language, most: int) -> Language:
    """Eight groups, the last two also written as ``dotted``; or at most ``most`` groups around one ``::``."""
    group, colon, gap = regex("[0-9A-Fa-f]{1,4}"), Language.literal(":"), Language.literal("::")
    led = group + colon
    forms = [led.repeat(_GROUPS - 1, _GROUPS - 1) + group, led.repeat(_GROUPS - 2, _GROUPS - 2) + dotted]
    for before in range(most + 1):
        head = led.repeat(before - 1, before - 1) + group + gap if before else gap
        room = most - before
        tails = [Language.epsilon()]
        if room >= 1:
            tails.append(led.repeat(0, room - 1) + group)
        if room >= 2:
            tails.append(led.repeat(0, room - 2) + dotted)
        forms.append(head + Language.union_of(tails))
    return Language.union_of(forms)


@cache
def label() -> Language:
    """One LDH label (letters, digits, hyphens) of 1 to 63 characters that is not an A-label (RFC 1123, section 2.1; RFC
    1035).
    """
    return regex(_LABEL) - (regex("[Xx][Nn]--") + Language.any_bytes())


@cache
def hostname() -> Language:
    """RFC 1123 host names of at most 253 characters, without A-labels and without a trailing dot."""
    return _names(label())


@cache
def hostname_or_a_labels() -> Language:
    """Host names, and names with any labels that begin with ``xn--``, whether these decode or not.

    A superset of the host names: a text outside of it is not a host name.
    """
    return _names(regex(_LABEL))


def _names(one: Language) -> Language:
    names = one + (Language.literal(".") + one).star()
    return names & regex(f"[0-9A-Za-z.-]{{1,{_MAX_NAME}}}")
