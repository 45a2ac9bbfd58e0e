"""URLs as pydantic reads and writes them, as patterns of ECMA-262.

The idea: pydantic's crate ``url`` follows the URL standard (WHATWG), which repairs nearly every text and writes it in
one way. A pattern here contains the texts that are written, and those repaired texts that do not grow, because pydantic
checks the length after the repair. The standard knows three kinds of URLs: schemes of the web, whose hosts are names or
addresses and which always have a path; ``file``; and all others, which have hosts of any characters, or none.

Left out: host names with A-labels (xn--...). Only some of them can be decoded, and no finite automaton can decide
which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tokenfst.automata.json_schema.python_texts import IPV4, IPV6

_WEB = ("http", "https", "ws", "wss", "ftp")
_PORT = r"(?::(?:6553[0-5]|655[0-2]\d|65[0-4]\d\d|6[0-4]\d{3}|[1-5]\d{4}|\d{1,4}))?"
_USER = r"[A-Za-z0-9._~!$&'()*+,%-]"
_LABEL = r"(?!xn--)[a-z0-9!$&'()*+,;=_~`{}-]+"
_ENDS = r"(?=[:/?#,]|$)"
_NAME = rf"(?:{_LABEL}\.)*(?!(?:\d+|0x[0-9a-f]*)\.?{_ENDS}){_LABEL}\.?{_ENDS}"
_HOST = rf"(?:{_NAME}|{IPV4}|\[{IPV6}\])"
_ANY_HOST = rf"(?:[A-Za-z0-9!\"$%&'()*+,.;=_~`{{}}-]+|\[{IPV6}\])"
_PATH = r"[A-Za-z0-9!$%&'()*+,.:;=@\[\]^_|~-]"
_ANY_PATH = r"[A-Za-z0-9!$%&'()*+,.:;=@\[\]^_|~\\-]"
_QUERY = r"(?:\?[!$-&(-;=?-~]*)?"
_ANY_QUERY = r"(?:\?[!$-;=?-~]*)?"
_FRAGMENT = r"(?:#[!#-;=?-_a-~]*)?"
_OPAQUE = r"(?!/)(?:[!-\"$->@-~]| (?= *[!-\"$->@-~]))*"
_UNIT = r"[A-Za-z0-9!$&'()*+,.:;=@_~-]|%[0-9A-Fa-f]{2}"
_VALID_PATH, _VALID = f"(?:{_UNIT})", f"(?:{_UNIT}|[/?])"
_VALID_USER = r"(?:[A-Za-z0-9._~!$&'()*+,-]|%[0-9A-Fa-f]{2})"
_VALID_HOST = rf"(?:(?:[A-Za-z0-9!$&'()*+,.;=_~-]|%[0-9A-Fa-f]{{2}})+|\[{IPV6}\])"


def url(schema: Mapping[str, Any], *, several: bool, strict: bool) -> str | None:
    """The pattern of the URLs of a core schema; ``None`` if their length is bounded and no pattern can express that.

    ``several``: allow several hosts. ``strict``: only URLs that the standard calls valid, in which nothing is repaired.
    """
    schemes: Sequence[str] | None = schema.get("allowed_schemes")
    given = any(schema.get(name) is not None for name in ("default_host", "default_port", "default_path"))
    if schema.get("max_length") is not None and (given or several):
        return None
    host_needed = several or (bool(schema.get("host_required")) and not schema.get("default_host"))
    letter = _VALID_USER if strict else _USER
    user = f"(?:{letter}*(?::{letter}*)?@)?"
    if strict:
        path = any_path = _VALID_PATH
        tail = any_tail = rf"(?:\?{_VALID}*)?(?:#{_VALID}*)?"
        any_host, opaque = _VALID_HOST, rf"(?!/){_VALID}*"
    else:
        path, any_path, any_host, opaque = _PATH, _ANY_PATH, _ANY_HOST, _OPAQUE
        tail, any_tail = f"{_QUERY}{_FRAGMENT}", f"{_ANY_QUERY}{_FRAGMENT}"
    forms = []
    if web := [name for name in _WEB if schemes is None or name in schemes]:
        forms.append(f"(?:{'|'.join(web)})://{_authority(user, _HOST, several)}(?:/{path}*)*{tail}")
    if (schemes is None or "file" in schemes) and not several:
        host = _HOST if schema.get("host_required") else f"(?:{_HOST})?"
        forms.append(f"file://{host}(?:/{path}*)+{tail}")
    others = [] if schemes is None else [name for name in schemes if name not in (*_WEB, "file")]
    if schemes is None or others:
        scheme = f"(?:{'|'.join(map(escaped, others))})" if others else _other_scheme()
        forms.append(f"{scheme}://{_authority(user, any_host, several)}(?:/{any_path}*)*{any_tail}")
        if not host_needed:
            forms.append(f"{scheme}://(?:/{any_path}*)*{any_tail}")
            if not given:
                forms.append(f"{scheme}:(?!//)(?:/{any_path}*)+{any_tail}")
                forms.append(f"{scheme}:{opaque}{any_tail}")
    return "|".join(forms)


def _authority(user: str, host: str, several: bool) -> str:
    """A host, with a user and a port or without; several are kept apart by commas, so that none is in a host."""
    if several:
        host, user = host.replace("+,", "+"), user.replace("+,", "+")
        one = f"{user}{host}{_PORT}"
        return f"{one}(?:,{one})*"
    return f"{user}{host}{_PORT}"


def _other_scheme() -> str:
    return rf"(?!(?:{'|'.join((*_WEB, 'file'))}):)[a-z][a-z0-9+.-]*"


def escaped(text: str) -> str:
    """A pattern that matches only ``text``."""
    return "".join(f"\\{each}" if each in r"\^$.*+?()[]{}|/" else each for each in text)
