"""Structural tags by their definition: the set of all words up to a length, from sets of words.

A word is a text over a small alphabet; characters of ``SPECIAL`` stand for special tokens, which free text does not
hold. Nothing here knows expressions or automata: free text is every text that a condition on its prefixes lets through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

SPECIAL = "\ue000\ue001\ue002"
"""Characters that stand for special tokens."""

Words = frozenset[str]
Ends = tuple[Any, ...] | None


class World:
    """All words of ``letters`` with at most ``longest`` characters. ``read``: what a string of the document stands for,
    each way a word with special tokens as characters of ``SPECIAL``; ``avoided``: its spelling, where free text must
    not hold that because of it. ``tokens``: names of tokens, each with its one character; each letter is a token, too.
    ``control_tokens``: whether free text without a bound holds special tokens.
    """

    def __init__(
        self,
        letters: str,
        longest: int,
        read: Callable[[str], Sequence[str]] = lambda text: (text,),
        avoided: Callable[[str], Sequence[str]] = lambda text: (),
        tokens: Mapping[str, str] | None = None,
        control_tokens: bool = False,
    ) -> None:
        self.tokens, self.control_tokens = dict(tokens or {}), control_tokens
        self.letters, self.longest, self.read, self.avoided = letters, longest, read, avoided
        self.texts = [
            "".join(word) for length in range(longest + 1) for word in product(letters, repeat=length)
        ]

    def words(self, format: Mapping[str, Any]) -> Words:
        """The words of a document's format."""
        return self._words(format, None, True)

    def _words(self, format: Mapping[str, Any], ends: Ends, here: bool) -> Words:
        """The words of a format, each with an end after it if the content of a tag with ``ends`` ends ``here``."""
        kind = format["type"]
        if kind == "any_text":
            most = format.get("max_chars")
            return self._free(
                (), (), format.get("excludes", ()), ends, here, self.longest if most is None else most
            )
        if kind in ("triggered_tags", "dispatch"):
            return self._triggered(format, ends, here)
        if kind in ("any_tokens", "exclude_token"):
            out = [*map(self._token, format.get("exclude_tokens", ())), *self._token_ends(ends)]
            run = self._run(out, special=True)
            most = 1 if kind == "exclude_token" else format.get("max_tokens")
            least = 1 if kind == "exclude_token" else 0
            kept = frozenset(
                word for word in run if least <= len(word) <= (self.longest if most is None else most)
            )
            return self._concat(kept, self._closing(ends, here))
        if kind in ("token_triggered_tags", "token_dispatch"):
            return self._token_triggered(format, ends, here)
        if kind == "sequence":
            *before, last = format["elements"]
            parts = [self._words(each, ends, False) for each in before]
            return self._concat(*parts, self._words(last, ends, here))
        if kind == "or":
            return frozenset().union(*(self._words(each, ends, here) for each in format["elements"]))
        if kind in ("optional", "star", "plus", "repeat"):
            low, high = {
                "optional": (0, 1),
                "star": (0, -1),
                "plus": (1, -1),
                "repeat": (format.get("min"), format.get("max")),
            }[kind]
            return self._repeat(format["content"], low, high, ends, here)
        return self._concat(self._limited(format), self._closing(ends, here))

    def _limited(self, format: Mapping[str, Any]) -> Words:
        kind = format["type"]
        if kind == "const_string":
            return self._kept(self.read(format["value"]))
        if kind == "regex":
            pattern = re.compile(format["pattern"])
            return frozenset(text for text in self.texts if pattern.fullmatch(text))
        if kind == "token":
            return frozenset({self._token(format["token"])})
        if kind == "tag":
            return self._concat(self._kept(self._mark(format["begin"])), self._tagged(format))
        assert kind == "tags_with_separator"
        tag = frozenset().union(*map(self._limited, format["tags"]))
        found = tag
        if not format.get("stop_after_first"):
            more = self._concat(self._kept(self.read(format["separator"])), tag)
            found = self._concat(tag, self._star(more))
        return found if format.get("at_least_one") else found | {""}

    def _tagged(self, tag: Mapping[str, Any]) -> Words:
        ends = tag["end"]
        return self._words(tag["content"], tuple(ends) if isinstance(ends, list) else (ends,), True)

    def _token(self, token: str) -> str:
        return self.tokens.get(token, token)

    def _mark(self, mark: Any) -> Sequence[str]:
        """The ways to read what a tag begins or ends with."""
        return self.read(mark) if isinstance(mark, str) else (self._token(mark["token"]),)

    def _marks(self, ends: Ends) -> list[str]:
        """The ends that free text is read for: all but the empty one, and tokens of text, which it may hold."""
        ways = [(each, way) for each in ends or () if each for way in self._mark(each)]
        return [way for each, way in ways if isinstance(each, str) or way in SPECIAL]

    def _token_ends(self, ends: Ends) -> list[str]:
        """The ends that are one token: those given as one, and names that are read as special tokens."""
        return [
            way
            for each in ends or ()
            if each
            for way in self._mark(each)
            if not isinstance(each, str) or way in [*SPECIAL]
        ]

    def _run(self, excluded: Sequence[str], *, special: bool) -> Words:
        """Any tokens but these."""
        names = {each for each in self.tokens.values() if each in SPECIAL[:2]} if special else set()
        kept = sorted({*self.letters, *names} - {*excluded})
        return frozenset(all_words("".join(kept), self.longest))

    def _token_triggered(self, format: Mapping[str, Any], ends: Ends, here: bool) -> Words:
        at_once: Words = frozenset()
        if format["type"] == "token_dispatch":
            stop, least = not format.get("loop", True), False
            triggers = [self._token(token) for token, _ in format["rules"]]
            for trigger, (_, content) in zip(triggers, format["rules"], strict=True):
                at_once |= self._concat(frozenset({trigger}), self._words(content, ends, here and stop))
        else:
            stop, least = format.get("stop_after_first", False), format.get("at_least_one", False)
            triggers = [self._token(token) for token in format["trigger_tokens"]]
            tags = frozenset().union(*map(self._limited, format["tags"]))
            at_once = self._concat(tags, self._closing(ends, here and stop))
        out = [*triggers, *map(self._token, format.get("exclude_tokens", ())), *self._token_ends(ends)]
        run = self._run(out, special=self.control_tokens)
        later = self._concat(run, at_once)
        closing = self._closing(ends, here)
        text = self._concat(run, closing)
        if least:
            return at_once if stop else self._concat(at_once, self._star(later), text)
        if stop:
            return text | later
        return self._concat(self._star(later), text)

    def _closing(self, ends: Ends, here: bool) -> Words:
        if ends is None or not here:
            return frozenset({""})
        return self._kept([way for end in ends for way in self._mark(end)])

    def _free(
        self,
        triggers: Sequence[str],
        spelled: Sequence[str],
        excludes: Sequence[str],
        ends: Ends,
        here: bool,
        most: int,
    ) -> Words:
        """Free text of at most ``most`` characters, with an end after it if one is asked for."""
        marks = [*triggers, *self._marks(ends)]
        held = [*excludes, *spelled, *self._avoided(ends)]
        texts = self.texts if most < self.longest else self._texts(marks, excludes)
        open_texts = frozenset(
            text for text in texts if len(text) <= most and not any(each in text for each in (*marks, *held))
        )
        if ends is None or not here:
            return open_texts
        found = set(open_texts) if "" in ends else set()
        for end in ends:
            for way in self._mark(end) if end else ():
                if isinstance(end, str) or way in SPECIAL:
                    found |= self._until(way, marks, held, most, texts, closes=True)
                else:
                    found |= self._concat(open_texts, frozenset({way}))
        return frozenset(found)

    def _avoided(self, ends: Ends) -> list[str]:
        return [each for end in ends or () if isinstance(end, str) for each in self.avoided(end)]

    def _texts(self, marks: Sequence[str], excludes: Sequence[str]) -> Sequence[str]:
        """What free text is made of: with control tokens, also of special tokens that nothing names."""
        if not self.control_tokens:
            return self.texts
        named = "".join([*marks, *(way for each in excludes for way in self.read(each))])
        special = "".join(each for each in self.tokens.values() if each in SPECIAL and each not in named)
        return list(all_words(self.letters + special, self.longest))

    def _until(
        self,
        mark: str,
        marks: Sequence[str],
        held: Sequence[str],
        most: int,
        texts: Sequence[str],
        *,
        closes: bool = False,
    ) -> set[str]:
        """Free text and ``mark`` after it, no mark ending earlier. If the mark ``closes`` the text, nothing may be
        held by the text before it; otherwise by both together.
        """
        return {
            text + mark
            for text in texts
            if len(text) <= most
            and len(text + mark) <= self.longest
            and not any(each in (text + mark)[:-1] for each in marks)
            and not any(each in (text if closes else text + mark) for each in held)
        }

    def _triggered(self, format: Mapping[str, Any], ends: Ends, here: bool) -> Words:
        excludes = format.get("excludes", ())
        rules: list[tuple[str, Words]] = []
        if format["type"] == "dispatch":
            names = [pattern for pattern, _ in format["rules"]]
            stop, least = not format.get("loop", True), False
            for pattern, content in format["rules"]:
                rules += [(way, self._words(content, ends, here and stop)) for way in self.read(pattern)]
        else:
            names = format["triggers"]
            stop, least = format.get("stop_after_first", False), format.get("at_least_one", False)
            for tag in format["tags"]:
                [trigger] = [each for each in names if tag["begin"].startswith(each)]
                rest = self._concat(self._kept(self.read(tag["begin"][len(trigger) :])), self._tagged(tag))
                rest = self._concat(rest, self._closing(ends, here and stop))
                rules += [(way, rest) for way in self.read(trigger)]
        triggers = [way for name in names for way in self.read(name)]
        spelled = [each for name in names for each in self.avoided(name)]
        marks = [*triggers, *self._marks(ends)]
        held = [*excludes, *spelled, *self._avoided(ends)]
        later: set[str] = set()
        at_once: set[str] = set()
        for trigger, rest in rules:
            at_once |= self._concat(self._kept([trigger]), rest)
            texts = self._texts(marks, excludes)
            later |= self._concat(frozenset(self._until(trigger, marks, held, self.longest, texts)), rest)
        text = self._free(triggers, spelled, excludes, ends, here, self.longest)
        if least and stop:
            return frozenset(at_once)
        if least:
            return self._concat(frozenset(at_once), self._star(frozenset(later)), text)
        if stop:
            return text | later
        return self._concat(self._star(frozenset(later)), text)

    def _repeat(self, content: Mapping[str, Any], low: int, high: int, ends: Ends, here: bool) -> Words:
        inner = self._words(content, ends, False)
        last = self._words(content, ends, here)
        found: set[str] = set()
        if low == 0:
            found |= self._closing(ends, here)
        before: Words = frozenset({""})
        seen: set[Words] = set()
        count = 1
        while high < 0 or count <= high:
            if count >= low:
                found |= self._concat(before, last)
            if count >= low and before in seen:
                break
            seen.add(before)
            before = self._concat(before, inner)
            if not before:
                break
            count += 1
        return frozenset(found)

    def _kept(self, words: Sequence[str]) -> Words:
        return frozenset(word for word in words if len(word) <= self.longest)

    def _concat(self, *parts: Words) -> Words:
        found: Words = frozenset({""})
        for part in parts:
            by_length = _by_length(part)
            found = frozenset(
                word + more
                for word in found
                for length in range(self.longest - len(word) + 1)
                for more in by_length.get(length, ())
            )
        return found

    def _star(self, part: Words) -> Words:
        found: Words = frozenset({""})
        while True:
            more = found | self._concat(found, part)
            if more == found:
                return found
            found = more


@lru_cache(maxsize=4096)
def _by_length(words: Words) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for word in words:
        found.setdefault(len(word), []).append(word)
    return found


def all_words(letters: str, longest: int) -> Iterator[str]:
    """Every word, special tokens among the letters too."""
    for length in range(longest + 1):
        for word in product(letters, repeat=length):
            yield "".join(word)
