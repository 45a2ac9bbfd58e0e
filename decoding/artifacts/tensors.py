"""The table of an artifact's tensors, from which the writer and the reader work.

A test checks docs/serving/format.md, native/artifact/view.cpp and native/bindings/token_automata/artifact.hpp against
it.
"""

from __future__ import annotations

from typing import NamedTuple


class Tensor(NamedTuple):
    """One tensor of the format. Dimensions with the same name are equal in all tensors.

    ``meaning``: its description in docs/serving/format.md. ``rules``: the conditions on its values that the core checks
    before an automaton is walked, in the core's words; a condition on several tensors is listed with the first of them.
    """

    name: str
    dtype: str
    shape: tuple[str | int, ...]
    meaning: str
    rules: tuple[str, ...]


TENSORS = (
    Tensor(
        "distance",
        "U32",
        ("states",),
        "least number of tokens to acceptance",
        ("a distance is less than the number of states",),
    ),
    Tensor(
        "flip_offsets",
        "U32",
        ("masks + 1",),
        "where each mask's flips begin and end",
        ("each mask has a range of flips", "flip ranges cover the flips", "flip ranges ascend"),
    ),
    Tensor("flips", "U32", ("flips",), "token ids", ("flips are token ids", "flips ascend")),
    Tensor(
        "mask",
        "U32",
        ("states",),
        "the mask of each state",
        ("each state has a mask, a distance and a bound", "states have masks that exist"),
    ),
    Tensor(
        "mask_row",
        "U32",
        ("masks",),
        "the row of each mask, plus 1; 0: no row",
        ("masks have rows that exist", "mask 0 is the empty one"),
    ),
    Tensor(
        "rows",
        "U32",
        ("rows", "words"),
        "sets of tokens as bits; words = ⌈V / 32⌉",
        ("rows are whole", "rows end with the vocabulary"),
    ),
    Tensor(
        "table",
        "U32",
        ("states", "classes"),
        "the next state",
        (
            "the table has a row of classes for each state",
            "state 0 is absorbing",
            "transitions lead to states",
            "start states are states",
        ),
    ),
    Tensor("worst", "U32", ("states",), "a bound of the distance after one more token", ()),
    Tensor(
        "accepting",
        "U8",
        ("states",),
        "1: the state accepts; 0: it does not",
        (
            "state 0 is there",
            "a state accepts (1) or not (0)",
            "state 0 does not accept, allows nothing, and leads nowhere",
        ),
    ),
    Tensor(
        "classes",
        "U8",
        (256,),
        "the class of each byte",
        ("there are 1 to 256 byte classes", "each byte has a class"),
    ),
)
"""In file order: wide types first, so that all are aligned, and then by name."""

MARKS = Tensor(
    "marks",
    "U32",
    ("marked", 4),
    "a marked state; its signs; the state it stands for; the same where a string is known, or 0",
    (
        "marks have four numbers",
        "marks are of states, ascend, and lead to states",
        "a mark has kinds that exist",
    ),
)
"""The additional tensor of automata with strings that must differ. It precedes ``mask``."""

STACK_TENSORS = (
    Tensor(
        "stack_asks",
        "U32",
        ("asks", 3),
        "look-ups: inner node, answer, outcome",
        (
            "rows of stacks are whole",
            "inner nodes count from 1",
            "each state with a stack has its own tree",
            "look-ups ascend, and each has one outcome",
            "look-ups ask for frames and lead somewhere",
            "look-ups begin at states",
            "a look-up goes on only where something lies below",
            "look-ups are trees",
            "look-ups end in masks that exist",
        ),
    ),
    Tensor(
        "stack_chains",
        "U32",
        ("chains", 3),
        "upper symbol, lower symbol, the one symbol that stands for both",
        (
            "chains ascend, and each is there once",
            "chains are of frames, the upper of which may be left out",
        ),
    ),
    Tensor(
        "stack_effects",
        "U32",
        ("effects", 3),
        "the state that is reached; 1 if the old stack stays below, else 0; where its pushes end",
        (
            "effects lead to states",
            "an effect keeps the stack or not, and its pushes follow those before",
            "an effect leads to a state with a stack just if there is one",
            "effects cover the pushes",
        ),
    ),
    Tensor(
        "stack_frames",
        "U32",
        ("symbols", 2),
        "1 if the symbol may be left out, else 0; its distance",
        ("a frame may be left out (1) or not (0)",),
    ),
    Tensor("stack_pushes", "U32", ("pushes",), "symbols", ("pushes are frames",)),
    Tensor(
        "stack_reveals",
        "U32",
        ("reveals", 3),
        "state, answer, effect",
        (
            "answers ascend, and each is given once",
            "answers are given to states that look into the stack",
            "answers name frames, and have effects that exist",
            "nothing stays below where nothing lies",
        ),
    ),
    Tensor(
        "stack_states",
        "U32",
        ("states", 4),
        "1 with a stack, 0 without; effect, 0 for none; 1 if it looks into the stack; distance without the stack",
        (
            "each state has its stacks",
            "a state has one stack or none, and looks only into what it has",
            "states have effects that exist",
            "only states with a stack have a distance without it",
            "states with a stack have the bound 0",
            "state 0 has no stack and no effect",
        ),
    ),
)
"""The additional tensors of push-down automata: all of them, or none. They precede ``table``."""


TOKEN_COLUMNS = Tensor(
    "token_columns",
    "U32",
    ("columns", 2),
    "token id, or 4,294,967,295 for the boundary of tokens; its column of `table`",
    (
        "columns of tokens have two numbers",
        "automata with a stack have no columns of tokens",
        "columns of tokens ascend by token",
        "columns of tokens are columns of no byte",
        "tokens with columns have no bytes",
    ),
)
"""The additional tensor of version 2, before ``worst``; version 2 has no stacks."""

EVERY_TENSOR = (*TENSORS, MARKS, *STACK_TENSORS, TOKEN_COLUMNS)

PROGRAM_TENSORS = (
    Tensor("assured", "U32", ("assured",), "instructions that surely have a word", ()),
    Tensor("code", "U32", ("numbers",), "the instructions; numbers below 0 in two's complement", ()),
    Tensor("labels", "U32", ("labels", 2), "an instruction; where its label ends in `label_bytes`", ()),
    Tensor("lexicons", "U32", ("lexicons",), "where the words of each set end in `word_ends`", ()),
    Tensor("machine_numbers", "U32", ("entries",), "the tables of each machine, one after the other", ()),
    Tensor(
        "machines",
        "U32",
        ("machines", 4),
        "start; states; classes, or 0 where edges are listed; how many edges",
        (),
    ),
    Tensor("rules", "U32", ("rules", 2), "the instruction that is the body; 1: it has the empty word", ()),
    Tensor("word_ends", "U32", ("texts",), "where each word ends in `word_bytes`", ()),
    Tensor("blob", "U8", ("blob",), "the bytes of all literals", ()),
    Tensor("label_bytes", "U8", ("label_bytes",), "labels in UTF-8", ()),
    Tensor(
        "machine_bytes",
        "U8",
        ("machine_bytes",),
        "of each machine its 256 classes, then its accepting states",
        (),
    ),
    Tensor("sets", "U8", ("sets", 32), "sets of bytes as bits", ()),
    Tensor("word_bytes", "U8", ("word_bytes",), "the words of all sets", ()),
)
"""The tensors of version 4, a program, in place of the others. ``program_arrays`` checks them, and the core when it
reads them.
"""

LEARNED_TENSORS = (
    Tensor(
        "learned_answers",
        "U32",
        ("answers", 6),
        "look-ups: inner node; digest of the answer; value",
        (
            "learned answers ascend",
            "learned answers lead to masks, or to inner nodes after their own",
            "what was learned are trees",
        ),
    ),
    Tensor("learned_flip_offsets", "U32", ("masks + 1",), "where each mask's flips begin and end", ()),
    Tensor("learned_flips", "U32", ("flips",), "token ids", ()),
    Tensor("learned_mask_row", "U32", ("masks",), "the row of each mask, plus 1; 0: no row", ()),
    Tensor("learned_nodes", "U32", ("nodes",), "the address that each inner node asks for", ()),
    Tensor("learned_rows", "U32", ("rows", "words"), "sets of tokens as bits", ()),
    Tensor(
        "learned_states",
        "U32",
        ("learned", 7),
        "digest of a state; value; distance; bound",
        (
            "rows of what was learned are whole",
            "learned states ascend",
            "learned states have masks and inner nodes that exist",
            "each learned state has its own tree",
        ),
    ),
)
"""The additional tensors of version 5, before ``lexicons``. Masks follow the rules of ``mask_row``, ``flips`` and
``rows``.
"""
