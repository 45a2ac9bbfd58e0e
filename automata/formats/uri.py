"""URIs, IRIs and URI templates as languages. The names are those of the rules of RFC 3986, RFC 3987 and RFC 6570.

RFC 3987 is RFC 3986 with more letters, so one builder makes both; its arguments are the additional letters and private
characters. An IPv4 host needs no rule of its own: each one is also a ``reg-name``, as is ``999.1.1.1``, which both RFCs
allow. The restrictions of RFC 3987 on right-to-left text are recommendations and not part of its grammar. The
apostrophe in a template is a literal (RFC 6570, erratum 6937).
"""

from __future__ import annotations

from tokenfst.automata.formats.host import ipv6
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex

_UCSCHAR = (
    r"\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(rf"\U000{plane:x}0000-\U000{plane:x}fffd" for plane in range(1, 0xE))
    + r"\U000e1000-\U000efffd"
)
_IPRIVATE = r"\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_UNRESERVED = r"A-Za-z0-9\-._~"
_SUB_DELIMS = r"!$&'()*+,;="
_PCT = r"%[0-9A-Fa-f]{2}"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*:"
_IP_FUTURE = rf"\[[Vv][0-9A-Fa-f]+\.[{_UNRESERVED}{_SUB_DELIMS}:]+\]"


def uri() -> Language:
    """RFC 3986 ``URI``: with a scheme, with or without a fragment."""
    return _absolute("", "")


def uri_reference() -> Language:
    """RFC 3986 ``URI-reference``: a URI or a relative reference."""
    return _absolute("", "") | _relative("", "")


def iri() -> Language:
    """RFC 3987 ``IRI``."""
    return _absolute(_UCSCHAR, _IPRIVATE)


def iri_reference() -> Language:
    """RFC 3987 ``IRI-reference``."""
    return _absolute(_UCSCHAR, _IPRIVATE) | _relative(_UCSCHAR, _IPRIVATE)


def uri_template() -> Language:
    """RFC 6570 ``URI-Template`` of all four levels; operators reserved for extensions count as operators."""
    literal = rf"[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~{_UCSCHAR}{_IPRIVATE}]"
    varchar = rf"(?:[A-Za-z0-9_]|{_PCT})"
    varspec = rf"{varchar}(?:\.?{varchar})*(?::[1-9][0-9]{{0,3}}|\*)?"
    expression = rf"\{{[+#./;?&=,!@|]?{varspec}(?:,{varspec})*\}}"
    return regex(rf"(?:{literal}|{_PCT}|{expression})*")


def _absolute(letters: str, private: str) -> Language:
    pchar = _pchar(letters)
    path = regex(rf"/(?:{pchar}+(?:/{pchar}*)*)?|{pchar}+(?:/{pchar}*)*|")
    return regex(_SCHEME) + (_network_path(letters) | path) + _query_and_fragment(letters, private)


def _relative(letters: str, private: str) -> Language:
    pchar, no_colon = _pchar(letters), rf"(?:[{_UNRESERVED}{_SUB_DELIMS}@{letters}]|{_PCT})"
    path = regex(rf"/(?:{pchar}+(?:/{pchar}*)*)?|{no_colon}+(?:/{pchar}*)*|")
    return (_network_path(letters) | path) + _query_and_fragment(letters, private)


def _network_path(letters: str) -> Language:
    """``"//" authority path-abempty``."""
    name = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}{letters}]|{_PCT})"
    user = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:{letters}]|{_PCT})"
    bracketed = Language.literal("[") + ipv6() + Language.literal("]")
    host = regex(rf"{name}*|{_IP_FUTURE}") | bracketed
    return regex(rf"//(?:{user}*@)?") + host + regex(rf"(?::[0-9]*)?(?:/{_pchar(letters)}*)*")


def _query_and_fragment(letters: str, private: str) -> Language:
    more = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:@/?{letters}]|{_PCT})"
    query = rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:@/?{letters}{private}]|{_PCT})"
    return regex(rf"(?:\?{query}*)?(?:\#{more}*)?")


def _pchar(letters: str) -> str:
    return rf"(?:[{_UNRESERVED}{_SUB_DELIMS}:@{letters}]|{_PCT})"
