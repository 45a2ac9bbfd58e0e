"""E-mail addresses as languages: ``Mailbox`` of RFC 5321, section 4.1.2, and its extension by RFC 6531.

JSON Schema refers to this grammar rule and not to the limits of section 4.5.3.1, so there is no bound on lengths, and a
domain is what the rule says: labels of letters, digits and inner hyphens (A-labels are not decoded).

A general address literal needs a tag registered with IANA; ``IPv6`` is the only registered tag, so it is the only one
here. An address literal's numbers may have leading zeros (``Snum``), and its ``::`` stands for two groups or more
(``IPv6-comp``): RFC 5321 differs from RFC 4291 in both.
"""

from __future__ import annotations

from tokenfst.automata.formats.host import ipv6_forms
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex

_NON_ASCII = r"\x80-\U0010FFFF"
_ATEXT = r"A-Za-z0-9!#$%&'*+\-/=?^_`{|}~"
_QTEXT = r" !#-\[\]-~"
_SNUM = r"(?:0{0,2}[0-9]|0?[1-9][0-9]|1[0-9]{2}|2[0-4][0-9]|25[0-5])"
_IPV4 = rf"{_SNUM}(?:\.{_SNUM}){{3}}"
_COMPRESSED_GROUPS = 6


def email() -> Language:
    """RFC 5321 ``Mailbox``: dot-string or quoted local part, domain or address literal."""
    return _mailbox("")


def idn_email() -> Language:
    """RFC 6531 ``Mailbox``: every character beyond ASCII counts as a letter, also in domains.

    Labels are not checked against IDNA; that is the sender's task.
    """
    return _mailbox(_NON_ASCII)


def _mailbox(letters: str) -> Language:
    atom = f"[{_ATEXT}{letters}]+"
    quoted = rf'"(?:[{_QTEXT}{letters}]|\\[ -~])*"'
    letter = f"[0-9A-Za-z{letters}]"
    label = rf"{letter}(?:-*{letter})*"
    name = regex(rf"(?:{atom}(?:\.{atom})*|{quoted})@")
    return name + (regex(rf"{label}(?:\.{label})*") | _address_literal())


def _address_literal() -> Language:
    ipv4 = regex(_IPV4)
    ipv6 = regex("[Ii][Pp][Vv]6:") + ipv6_forms(ipv4, _COMPRESSED_GROUPS)
    return Language.literal("[") + (ipv4 | ipv6) + Language.literal("]")
