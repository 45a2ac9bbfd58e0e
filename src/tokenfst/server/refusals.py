"""Refusals: every error as one JSON object, with the message of the library.

    {"error": {"code": "bad_constraint", "type": "SchemaError", "message": "#/type: ...", "pointer": "#/type",
               "position": null, "part": "a", "remedy": "..."}}

``code`` is a key of ``STATUS``, for programs. ``type`` is the class of the library's error, or null. ``message`` says
what is wrong, and where. ``pointer`` is a JSON pointer to the place, ``position`` a position in a pattern or grammar,
and ``part`` the member of the request that the error is about; each is null if it does not apply. ``remedy`` is the
server's advice, or null.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from tokenfst.decoding.store.batch import place_of, reason_of
from tokenfst.errors import (
    ArtifactError,
    ArtifactVocabularyError,
    BudgetExceeded,
    MissingDependencyError,
    NotInStoreError,
    StoreError,
    TokenfstError,
)

STATUS = {
    "bad_request": 400,
    "no_key": 401,
    "not_found": 404,
    "wrong_method": 405,
    "too_slow": 408,
    "too_large": 413,
    "wrong_encoding": 415,
    "bad_range": 416,
    "bad_constraint": 422,
    "over_limit": 422,
    "busy": 429,
    "fault": 500,
    "died": 500,
    "store": 503,
    "ending": 503,
    "overloaded": 503,
    "starting": 503,
}
"""The HTTP status of each code."""


@dataclass(frozen=True)
class Refused(Exception):
    """An error that refuses a request. The fields are those of the JSON object in the module's docstring;
    ``retry_after``: seconds for the header ``Retry-After``.
    """

    code: str
    message: str
    remedy: str = ""
    type: str = ""
    pointer: str | None = None
    position: int | None = None
    part: str | None = None
    retry_after: int | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS[self.code]

    def body(self) -> bytes:
        """The refusal as JSON."""
        about: dict[str, Any] = {
            "code": self.code,
            "type": self.type or None,
            "message": self.message,
            "pointer": self.pointer,
            "position": self.position,
            "part": self.part,
            "remedy": self.remedy or None,
        }
        return json.dumps({"error": about}).encode()


def busy(message: str, delay: int) -> Refused:
    """The refusal of a request because too many wait, or because it has waited too long. ``delay``: seconds after which
    the client should try again.
    """
    return Refused("busy", message, "send it again later (Retry-After)", retry_after=delay)


_OWN = 0.75
"""A request that had a processor for less than this fraction of its time was delayed by other work."""


def late(limit: float, used: float | None) -> Refused:
    """The refusal of a request that took more than ``limit`` seconds, ``used`` of them on a processor (``None``: not
    known). It is final only if the request had a processor for most of them; otherwise the client should try again.
    """
    if used is None or used >= _OWN * limit:
        return Refused(
            "over_limit",
            f"it needs more than {limit:g} seconds",
            "this server allows no more: make the constraint smaller",
            BudgetExceeded.__name__,
        )
    return Refused(
        "overloaded",
        f"it was not finished within {limit:g} seconds, and had a processor for {used:.3g} of them: it waited for a "
        "processor or for the store",
        "send it again later (Retry-After), or to another server",
        retry_after=max(1, math.ceil(limit)),
    )


def unknown_id() -> Refused:
    """The refusal for an id that is not in the tenant's store. It is the same whether another tenant has the id."""
    return Refused(
        "not_found",
        "there is no constraint with this id",
        "send the constraint to POST /v1/constraints again",
        NotInStoreError.__name__,
    )


def refused(error: Exception, part: str | None = None, used: float | None = None) -> Refused:
    """The refusal for an error that a question raised. ``part``: the member of the request that the error is about;
    ``used``: seconds for which the question had a processor.
    """
    kind, message = type(error).__name__, reason_of(error)
    if isinstance(error, Refused):
        return error
    if isinstance(error, BudgetExceeded):
        if error.resource == "seconds" and (found := late(error.limit, used)).code == "overloaded":
            return found
        remedy = f"this server allows {error.limit:,.12g} {error.resource}: make the constraint smaller"
        return Refused("over_limit", message, remedy, kind, part=part)
    if isinstance(error, NotInStoreError):
        return unknown_id()
    if isinstance(error, ArtifactVocabularyError):
        return Refused(
            "bad_request",
            "the constraint with this id was compiled for another vocabulary",
            "name its vocabulary, or send the constraint to POST /v1/constraints again",
            kind,
            pointer="#/vocabulary",
        )
    if isinstance(error, ArtifactError):
        return Refused(
            "store",
            "the stored artifact with this id is damaged, or not signed by a key that this server trusts",
            "send the constraint to POST /v1/constraints again, which replaces it",
            kind,
        )
    if isinstance(error, StoreError):
        return Refused("store", "the store does not work", "try again later", kind, retry_after=5)
    if isinstance(error, MissingDependencyError):
        return Refused("fault", message, "tell the operator of this server", kind)
    if isinstance(error, TokenfstError | ValueError | TypeError):
        place = place_of(error)
        return Refused(
            "bad_constraint",
            message,
            type=kind,
            pointer=place if place and not place.startswith("position ") else None,
            position=getattr(error, "position", None),
            part=part,
        )
    return Refused(
        "fault", message, "this is a bug in tokenfst, not an error in your request: please report it", kind
    )
