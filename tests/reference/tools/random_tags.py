"""Random structural tags over a small alphabet, for comparisons with the definition and with other engines."""

from __future__ import annotations

import random
from typing import Any


class RandomTags:
    """Draws formats. ``letters``: what strings are made of; ``names``: of special tokens, which they may hold.
    ``token_formats``: whether tokens are spoken of, too. ``strings``: the strings to choose from, if not all. ``stop``:
    an end token, which is the end of some tags.
    """

    def __init__(
        self,
        rng: random.Random,
        letters: str,
        names: tuple[str, ...] = (),
        *,
        token_formats: bool = False,
        strings: tuple[str, ...] = (),
        stop: str = "",
    ) -> None:
        self.rng, self.letters, self.names, self.token_formats = rng, letters, names, token_formats
        self.strings, self.stop = strings, stop

    def format(self, depth: int) -> dict[str, Any]:
        """A format with at most ``depth`` formats inside of each other."""
        rng = self.rng
        leaves = ["const_string", "regex", "any_text", "any_text"]
        nested = [
            *("sequence", "or", "optional", "plus", "star", "repeat"),
            *(
                "tag",
                "tag",
                "triggered_tags",
                "triggered_tags",
                "triggered_tags",
                "tags_with_separator",
                "dispatch",
            ),
        ]
        if self.token_formats:
            leaves += ["token", "exclude_token", "any_tokens"]
            nested += ["token_triggered_tags", "token_dispatch"]
        kind = rng.choice(leaves if depth <= 0 else leaves + nested * 2)
        if kind in ("token", "exclude_token", "any_tokens", "token_triggered_tags", "token_dispatch"):
            return self.of_tokens(kind, depth)
        if kind == "const_string":
            return {"type": kind, "value": self.string(0, 2)}
        if kind == "regex":
            one, two = rng.choice(self.letters), rng.choice(self.letters)
            return {
                "type": kind,
                "pattern": rng.choice([one, f"{one}*", f"({one}|{two}{one})", f"[{one}{two}]+"]),
            }
        if kind == "any_text":
            made: dict[str, Any] = {"type": kind}
            if rng.random() < 0.4:
                made["excludes"] = self.excludes()
            if rng.random() < 0.15:
                made["max_chars"] = rng.randrange(4)
            return made
        if kind in ("sequence", "or"):
            return {"type": kind, "elements": [self.format(depth - 1) for _ in range(rng.randint(1, 3))]}
        if kind in ("optional", "plus", "star"):
            return {"type": kind, "content": self.format(depth - 1)}
        if kind == "repeat":
            low = rng.randrange(3)
            return {
                "type": kind,
                "min": low,
                "max": rng.choice([-1, low, low + 1]),
                "content": self.format(depth - 1),
            }
        if kind == "tag":
            by_token = self.token_formats and rng.random() < 0.3
            return self.tag(
                {"type": "token", "token": self.token()} if by_token else self.string(0, 2), depth
            )
        if kind == "tags_with_separator":
            tags = [self.tag(self.string(0, 2), depth) for _ in range(rng.randint(1, 2))]
            return {"type": kind, "tags": tags, "separator": self.string(0, 2), **self.flags()}
        if kind == "dispatch":
            rules = [[self.string(1, 3), self.format(depth - 1)] for _ in range(rng.randint(1, 2))]
            return {"type": kind, "rules": rules, "loop": rng.random() < 0.6, "excludes": self.excludes()}
        triggers = list(dict.fromkeys(self.string(1, 3) for _ in range(rng.randint(1, 2))))
        begins = [trigger + self.string(0, 1) for trigger in triggers]
        begins += [rng.choice(triggers) + self.string(0, 1) for _ in range(rng.randrange(2))]
        return {
            "type": kind,
            "triggers": triggers,
            "tags": [self.tag(begin, depth) for begin in begins],
            "excludes": self.excludes(),
            **self.flags(),
        }

    def of_tokens(self, kind: str, depth: int) -> dict[str, Any]:
        """A token-level format."""
        rng = self.rng
        if kind == "token":
            return {"type": kind, "token": self.token()}
        excluded = list(dict.fromkeys(self.token() for _ in range(rng.randrange(3))))
        made: dict[str, Any] = {"type": kind, "exclude_tokens": excluded}
        if kind == "any_tokens" and rng.random() < 0.3:
            made["max_tokens"] = rng.randrange(3)
        if kind == "token_dispatch":
            made["rules"] = [[self.token(), self.format(depth - 1)] for _ in range(rng.randint(1, 2))]
            made["loop"] = rng.random() < 0.6
        if kind == "token_triggered_tags":
            triggers = list(dict.fromkeys(self.token() for _ in range(rng.randint(1, 2))))
            made["trigger_tokens"] = triggers
            begins = [*triggers, rng.choice(triggers)]
            made["tags"] = [self.tag({"type": "token", "token": each}, depth) for each in begins]
            made |= self.flags()
        return made

    def token(self) -> str:
        """A token, by its spelling or name."""
        return self.rng.choice([*self.letters, *self.names])

    def tag(self, begin: Any, depth: int) -> dict[str, Any]:
        """A tag with this beginning."""
        ends = [self.string(0, 2) for _ in range(self.rng.randint(1, 2))]
        end: Any = ends if len(ends) > 1 else ends[0]
        if self.stop and self.rng.random() < 0.4:
            end = self.rng.choice([self.stop, [self.stop, *ends], {"type": "token", "token": self.stop}])
        elif self.token_formats and self.rng.random() < 0.4:
            end = {"type": "token", "token": self.token()}
        return {"type": "tag", "begin": begin, "content": self.format(depth - 1), "end": end}

    def flags(self) -> dict[str, bool]:
        """The flags of tags in free text."""
        return {
            name: self.rng.random() < 0.3
            for name in ("at_least_one", "stop_after_first")
            if self.rng.random() < 0.7
        }

    def excludes(self) -> list[str]:
        """Excluded strings, mostly none; never names."""
        if self.rng.random() < 0.7:
            return []
        if self.strings:
            return [self.rng.choice(self.strings)]
        return ["".join(self.rng.choices(self.letters, k=self.rng.randint(1, 3)))]

    def string(self, low: int, high: int) -> str:
        """A string of ``low`` to ``high`` letters and names."""
        if self.strings:
            return self.rng.choice(self.strings) if low or self.rng.random() < 0.7 else ""
        pieces = [*self.letters, *self.names]
        return "".join(self.rng.choice(pieces) for _ in range(self.rng.randint(low, high)))
