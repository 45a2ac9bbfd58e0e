"""The log: one JSON object on each line of stderr. It contains no key, no constraint and no text of a client."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

LOGGER = logging.getLogger("tokenfst.server")


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        about: dict[str, Any] = {
            "time": when,
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        about |= getattr(record, "about", {})
        if record.exc_info:
            about["error"] = self.formatException(record.exc_info)
        return json.dumps(about, default=str)


def start(level: str) -> None:
    """Send the log of the server and of uvicorn to stderr, as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    for name in ("tokenfst.server", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = (
            [handler] if name != "uvicorn.error" else [],
            name == "uvicorn.error",
        )
        logger.setLevel(level.upper() if name == "tokenfst.server" else "WARNING")


@contextmanager
def uvicorn_silent(when: Callable[[], bool]) -> Iterator[None]:
    """A context in which uvicorn logs nothing once ``when()`` is true, since that error is reported in another way."""
    logger = logging.getLogger("uvicorn.error")

    def keeps(record: logging.LogRecord) -> bool:
        return not when()

    logger.addFilter(keeps)
    try:
        yield
    finally:
        logger.removeFilter(keeps)


def event(name: str, level: int = logging.INFO, **about: Any) -> None:
    """Log an event with its fields."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, name, extra={"about": about})
