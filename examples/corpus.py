"""The texts that the small model is trained on, and those that are held out. None is downloaded.

- *Documentation*: ``pydoc_data.topics``, and the docstrings of the standard library and of the packages in
  ``PACKAGES``, read from their sources (nothing is imported).
- *JSON*: records, and tool calls for requests in English, drawn from the tables below.
- *CommonGen* (Lin et al., 2020), ../shared/commongen: sentences for sets of concepts. A hash of the set decides which
  part it belongs to: half of the sets are held out, and a tenth of the other half serves to choose between
  checkpoints.

A prompt for a sentence has one of two forms, `concepts: dog, throw` and `blanks: A man _ the _.`. Concepts are listed
in the order in which the sentence has them. The training half has some 1,800 sentences, which a model soon knows by
heart. So each time that a sentence occurs in training, its prompt has other concepts or other blanks. Most times the
sentence itself is changed too: words of other sentences, in the same inflection, replace some of its own.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import itertools
import json
import random
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

PACKAGES = ("numpy", "pydantic", "rich", "typer", "lark", "safetensors")
"""Packages whose docstrings are read. Licences: BSD-3-Clause (numpy), Apache-2.0 (safetensors), MIT (the others)."""

COMMONGEN = Path(__file__).resolve().parents[2] / "shared" / "commongen" / "validation.json"

Part = Literal["train", "choose", "held out"]


# --- Documentation --------------------------------------------------------------------------------------


def documentation() -> list[str]:
    """Texts about Python, in an order that depends on nothing but their content."""
    from pydoc_data.topics import topics

    roots = [Path(sysconfig.get_paths()["stdlib"])]
    for package in PACKAGES:
        found = importlib.util.find_spec(package)
        if found is None or found.origin is None:
            raise SystemExit(f"the training texts include the docstrings of {package}: pip install {package}")
        roots.append(Path(found.origin).parent)
    return sorted({*topics.values(), *(text for root in roots for text in docstrings(root))})


def docstrings(root: Path) -> Iterator[str]:
    """Docstrings of more than 60 characters in all modules below a folder, without tests and installed packages."""
    for path in root.rglob("*.py"):
        if {"site-packages", "test", "tests", "idlelib", "idle_test", "lib2to3"} & set(
            path.relative_to(root).parts
        ):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text and len(text) > 60:
                    yield text


# --- CommonGen ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConceptSet:
    """Concepts in the order of the file, and all sentences that people wrote for them."""

    concepts: tuple[str, ...]
    sentences: tuple[str, ...]


def commongen(part: Part) -> list[ConceptSet]:
    """The concept sets of one part, in the order of the file. No held-out set has the concepts of another part."""
    if not COMMONGEN.exists():
        raise SystemExit("CommonGen's validation.json is expected in shared/commongen beside the repository")
    found: dict[tuple[str, ...], list[str]] = {}
    for row in json.loads(COMMONGEN.read_text()):
        found.setdefault(tuple(row["concepts"]), []).append(" ".join(row["target"].split()))
    learned = {frozenset(concepts) for concepts in found if part_of(concepts) != "held out"}
    return [
        ConceptSet(concepts, tuple(sentences))
        for concepts, sentences in found.items()
        if part_of(concepts) == part and (part != "held out" or frozenset(concepts) not in learned)
    ]


def part_of(concepts: tuple[str, ...]) -> Part:
    """The part that a set of concepts belongs to. The order of concepts does not matter, nor whether a concept occurs
    twice (a brush, to brush).
    """
    digest = hashlib.sha256(" ".join(sorted(concepts)).encode()).digest()
    if digest[0] % 2:
        return "held out"
    return "choose" if digest[1] < 26 else "train"


def concepts_prompt(concepts: list[str] | tuple[str, ...]) -> str:
    return f"concepts: {', '.join(concepts)}\nsentence:"


def blanks_prompt(text: str) -> str:
    return f"blanks: {text}\nsentence:"


WORD = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
FUNCTION_WORDS = frozenset(
    """
    a an the and or but if as of in on at to for from by with into onto up down out off over under is are was were be
    been being am do does did has have had will would can could may might must should not no nor so than then that this
    these those there here he she it they we you i him her them us me his its their our your my who which what when
    where while some any all each one two other another very just about through
    """.split()  # noqa: SIM905  # words are read more easily than a list
)


NOUNS_FOLLOW = frozenset(
    "a an the of in on at from by with into over his her its their my your our".split()  # noqa: SIM905  # words are read more easily than a list
)
"""Words after which a word that may be a noun or a verb is a noun."""


@cache
def lemmas(word: str) -> tuple[str, ...]:
    """What a word may be a form of, the likeliest first: by lemminflect its lemmas as a noun and as a verb, and the
    word itself.
    """
    from lemminflect import getAllLemmas

    found = getAllLemmas(word.lower())
    known = [form for kind in ("VERB", "NOUN") for form in found.get(kind, ())]
    if word.lower() in known and not word.lower().endswith("ing"):
        known.insert(0, word.lower())
    return tuple(dict.fromkeys([*known, word.lower()]))


def sentence_documents(sets: list[ConceptSet], draw: random.Random, reword: float = 0.0) -> list[str]:
    """One document for each sentence, with a prompt of concepts or of blanks, drawn at random. ``reword``: the share of
    sentences in which words are replaced.
    """
    lexicon = Lexicon.of(sets) if reword else None
    documents = []
    for item in sets:
        for text in item.sentences:
            kind, wanted, sentence = draw.random(), item.concepts, text
            if lexicon and draw.random() < reword:
                wanted, sentence = None, lexicon.reworded(text, draw)
            if kind < 0.3:
                gapped = with_blanks(sentence, draw.choice((0.1, 0.2, 0.3)), draw)
                documents.append(f"{blanks_prompt(gapped)} {sentence}")
            else:
                concepts = concepts_of(sentence, wanted if kind < 0.65 else None, draw)
                documents.append(f"{concepts_prompt(concepts)} {sentence}")
    return documents


@dataclass(frozen=True)
class Lexicon:
    """The nouns and verbs of sentences by inflection (Penn Treebank's tags), each as often as it occurs."""

    words: dict[str, list[str]]

    @classmethod
    def of(cls, sets: list[ConceptSet]) -> Lexicon:
        words: dict[str, list[str]] = {}
        for item in sets:
            for sentence in item.sentences:
                for before, word in itertools.pairwise(["", *WORD.findall(sentence)]):
                    tag = inflection(word, before)
                    if tag:
                        words.setdefault(tag, []).append(word)
        return cls(words)

    def reworded(self, sentence: str, draw: random.Random) -> str:
        """The sentence, with about half of its nouns and verbs replaced by others. A word after "a" or "an" is
        replaced only where the article still fits.
        """
        parts, before = [], ""
        for part in re.split(rf"({WORD.pattern})", sentence):
            tag = inflection(part, before) if WORD.fullmatch(part) else None
            new = draw.choice(self.words[tag]) if tag and draw.random() < 0.5 else part
            if before.lower() in ("a", "an") and (new[0] in "aeiou") != (part[0] in "aeiou"):
                new = part
            parts.append(new)
            before = part if WORD.fullmatch(part) else before
        return "".join(parts)


@cache
def inflection(word: str, before: str) -> str | None:
    """The Penn Treebank tag of a noun or verb in lower case; None for other words. The word before it decides if it may
    be either.
    """
    from lemminflect import getAllInflections, getAllLemmas

    if not word.islower() or word in FUNCTION_WORDS or len(word) < 3:
        return None
    found = [
        tag
        for kind in ("NOUN", "VERB")
        for base in getAllLemmas(word).get(kind, ())
        for tag, forms in getAllInflections(base, kind).items()
        if word in forms
    ]
    nouns, verbs = [tag for tag in found if tag[0] == "N"], [tag for tag in found if tag[0] == "V"]
    noun_first = before.lower() in NOUNS_FOLLOW or not verbs
    return next(iter(nouns if nouns and noun_first else verbs), None)


def concepts_of(sentence: str, wanted: tuple[str, ...] | None, draw: random.Random) -> list[str]:
    """Concepts in the order in which the sentence has them: those of ``wanted``; if it is None, two to five of the
    sentence's content words.
    """
    found: dict[str, None] = {}
    for word in WORD.findall(sentence):
        if word.lower() in FUNCTION_WORDS:
            continue
        if wanted is None:
            found.setdefault(lemmas(word)[0])
        else:
            found.update(dict.fromkeys(concept for concept in lemmas(word) if concept in wanted))
    if wanted is not None:
        return [*found, *(concept for concept in wanted if concept not in found)]
    chosen = draw.sample(range(len(found)), min(len(found), draw.randint(2, 5)))
    return [concept for index, concept in enumerate(found) if index in chosen]


def with_blanks(sentence: str, share: float, draw: random.Random) -> str:
    """The sentence with ``_`` in place of a share of its words, at least one; neighbouring blanks become one."""
    words = sentence.split(" ")
    for index in draw.sample(range(len(words)), max(1, round(share * len(words)))):
        words[index] = "_"
    return re.sub(r"_( _)+", "_", " ".join(words))


# --- JSON -----------------------------------------------------------------------------------------------

NAMES = tuple(
    """
    Anna Ben Clara David Elena Felix Grace Hugo Irene Jonas Karin Leo Maria Nina Oscar Paula Quinn Rosa Simon Tina
    """.split()  # noqa: SIM905  # words are read more easily than a list
)
CITIES = tuple(
    """
    Berlin Paris London Madrid Rome Vienna Oslo Zürich Tokyo Boston Lisbon Prague Dublin Athens Montréal
    """.split()  # noqa: SIM905  # words are read more easily than a list
)
ROOMS = ("kitchen", "bedroom", "bathroom", "office", "living room", "garage", "hall")
ITEMS = (
    "apple",
    "book",
    "chair",
    "lamp",
    "phone",
    "shirt",
    "table",
    "bottle",
    "guitar",
    "ball",
    "camera",
    "hat",
)
COLOURS = ("red", "green", "blue", "black", "white", "yellow")
WORDS = {
    "name": NAMES,
    "person": NAMES,
    "city": CITIES,
    "origin": CITIES,
    "destination": CITIES,
    "room": ROOMS,
    "item": ITEMS,
    "colour": COLOURS,
    "unit": ("celsius", "fahrenheit"),
    "mode": ("car", "train", "bicycle", "foot"),
    "cuisine": ("Italian", "Thai", "French", "Indian", "Greek", "Mexican"),
    "language": ("German", "French", "Spanish", "Italian", "Japanese"),
    "currency": ("EUR", "USD", "GBP", "JPY", "CHF"),
    "target": ("EUR", "USD", "GBP", "JPY", "CHF"),
    "genre": ("jazz", "rock", "folk", "opera", "blues"),
    "folder": ("docs", "photos", "music", "tmp"),
    "status": ("open", "closed", "waiting"),
}
"""The values of those arguments and fields that have only a few possible values."""

TOOLS: dict[str, tuple[str, ...]] = {
    "get_weather": ("What is the weather in {city}, in {unit}?", "Weather for {city} in {unit}, please."),
    "get_forecast": ("How will the weather in {city} be in the next {days} days?",),
    "set_timer": ("Set a timer for {minutes} minutes.", "Wake me in {minutes} minutes."),
    "convert_currency": ("How much are {amount} {currency} in {target}?",),
    "book_flight": ("Book a flight from {origin} to {destination} on {date} for {count} people.",),
    "find_restaurants": (
        "Find {cuisine} restaurants in {city}.",
        "Where can I eat {cuisine} food in {city}?",
    ),
    "translate": ("Say '{text}' in {language}.",),
    "play_music": ("Play some {genre}.", "I want to hear {genre} in the {room}."),
    "set_light": ("Set the light in the {room} to {percent} percent.",),
    "set_thermostat": ("Make it {degrees} degrees in the {room}.",),
    "get_route": ("How do I get from {origin} to {destination} by {mode}?",),
    "add_to_cart": ("Buy {count} of the {item}.", "Put a {colour} {item} into the cart."),
    "send_message": ("Tell {person}: {text}", "Write to {person}: {text}"),
    "create_event": ("Meet {person} in {city} on {date} at {time}.",),
    "remind": ("Remind me on {date} at {time}: {text}",),
    "list_files": ("What is in {folder}?", "Show the files of {folder}."),
}
"""Requests for each tool. The arguments of a call are the fields that the request names, in that order."""

RECORD_FIELDS = (
    *(
        "id",
        "name",
        "age",
        "city",
        "email",
        "active",
        "date",
        "time",
        "item",
        "colour",
        "count",
        "price",
        "status",
        "tags",
    ),
    *("address", "note", "temperature", "person", "room", "score"),
)


def value(field: str, draw: random.Random, sentences: list[str]) -> Any:
    """A random value for a field of this name."""
    if field in WORDS:
        return draw.choice(WORDS[field])
    made: dict[str, Any] = {
        "id": draw.randint(1, 9999),
        "age": draw.randint(1, 99),
        "email": f"{draw.choice(NAMES).lower()}@example.{draw.choice(('com', 'org', 'net'))}",
        "active": draw.random() < 0.5,
        "date": f"20{draw.randint(20, 29)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}",
        "time": f"{draw.randint(0, 23):02}:{draw.choice((0, 15, 30, 45)):02}",
        "count": draw.randint(1, 12),
        "days": draw.randint(2, 10),
        "minutes": draw.choice((1, 2, 5, 10, 15, 20, 30, 45, 60, 90)),
        "amount": draw.choice((1, 5, 10, 20, 50, 100, 250, 1000)),
        "percent": draw.randrange(0, 101, 10),
        "degrees": draw.randint(15, 26),
        "price": draw.randint(100, 9999) / 100,
        "score": draw.randint(0, 100) / 10,
        "temperature": draw.randint(-150, 380) / 10,
        "tags": draw.sample(COLOURS, draw.randint(0, 3)),
        "address": {"city": draw.choice(CITIES), "zip": str(draw.randint(10000, 99999))},
        "note": draw.choice((None, *draw.sample(sentences, 3))),
        "text": draw.choice(sentences),
    }
    return made[field]


def json_document(draw: random.Random, sentences: list[str]) -> str:
    """A tool call with its request, or a record, or a list of records."""
    if draw.random() < 0.6:
        prompt, call = tool_call(draw, sentences)
        return f"{prompt} {call}"
    fields = draw.sample(RECORD_FIELDS, draw.randint(2, 6))
    several = draw.randint(1, 3)
    rows = [{field: value(field, draw, sentences) for field in fields} for _ in range(several)]
    data = rows[0] if several == 1 else rows
    return f"record: {', '.join(fields)}\njson: {json.dumps(data, ensure_ascii=False)}"


def tool_call(draw: random.Random, sentences: list[str]) -> tuple[str, str]:
    """A prompt, and the call that answers it: `{"name": ..., "arguments": {...}}`."""
    name = draw.choice(sorted(TOOLS))
    request = draw.choice(TOOLS[name])
    arguments = {field: value(field, draw, sentences) for field in re.findall(r"{(\w+)}", request)}
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"request: {request.format(**arguments)}\ncall:", call
