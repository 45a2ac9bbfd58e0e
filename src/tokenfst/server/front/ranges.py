"""The bytes that a ``Range`` header requests, and the entity tags of ``If-None-Match`` (RFC 9110, sections 13, 14)."""

from __future__ import annotations

import re

from tokenfst.common.plurals import counted

_ONE = re.compile(r"bytes=\s*(\d{0,40})-(\d{0,40})\s*", re.IGNORECASE)
_TAG = re.compile(r'(?:W/)?("[^"]*")')


def asked_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The requested half-open range of bytes (first, end) of ``size`` bytes; None for the whole. A header with several
    ranges, another unit than bytes, or a number of more than 40 digits is ignored, as the RFC allows. Raises ValueError
    if the range is empty.
    """
    if header is None or (match := _ONE.fullmatch(header)) is None:
        return None
    first, last = match.groups()
    if not first and not last:
        return None
    if not first:
        begin, end = max(0, size - int(last)), size
    else:
        begin = int(first)
        end = size if not last else min(size, int(last) + 1)
        if last and int(last) < begin:
            return None
    if begin >= end:
        raise ValueError(f"the whole has {counted(size, 'byte')}")
    return begin, end


def names_tag(header: str | None, tag: str) -> bool:
    """Whether the header ``If-None-Match`` names an entity tag: in its list, as a weak tag too, or by ``*``."""
    if header is None:
        return False
    return header.strip() == "*" or tag in _TAG.findall(header)
