"""A tiny decoder as an ONNX model in the folder that ONNX Runtime GenAI reads: one layer of attention, random weights.

The graph is written by hand: the inputs and outputs are those that ``genai_config.json`` names, the keys and values of
the past among them, and positions follow from the attention mask.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

WIDTH, HEADS, POSITIONS = 32, 2, 256
SIZE = WIDTH // HEADS
_NAMES = {
    "past_key": "past_key_values.0.key",
    "past_value": "past_key_values.0.value",
    "present_key": "present.0.key",
    "present_value": "present.0.value",
}
_GRAPH = """
<ir_version: 10, opset_import: ["" : 18]>
decoder (int64[batch, length] input_ids, int64[batch, total] attention_mask,
         float[batch, HEADS, past, SIZE] past_key, float[batch, HEADS, past, SIZE] past_value)
     => (float[batch, length, TOKENS] logits,
         float[batch, HEADS, total, SIZE] present_key, float[batch, HEADS, total, SIZE] present_value)
<int64 zero = {0}, int64 one = {1}, int64[1] first = {0}, int64[1] second = {1}, int64[2] between = {1, 2},
 int64[4] split = {0, 0, HEADS, SIZE}, int64[3] joined = {0, 0, WIDTH}, float far = {-10000.0}, float scale = {SCALE}>
{
   all_shape = Shape(attention_mask)
   total = Gather(all_shape, one)
   new_shape = Shape(input_ids)
   length = Gather(new_shape, one)
   past = Sub(total, length)
   places = Range(past, total, one)
   every_place = Range(zero, total, one)
   token = Gather(embeddings, input_ids)
   place = Gather(positions, places)
   x = Add(token, place)
   q_flat = MatMul(x, wq)
   q_split = Reshape(q_flat, split)
   q = Transpose<perm = [0, 2, 1, 3]>(q_split)
   k_flat = MatMul(x, wk)
   k_split = Reshape(k_flat, split)
   k = Transpose<perm = [0, 2, 1, 3]>(k_split)
   v_flat = MatMul(x, wv)
   v_split = Reshape(v_flat, split)
   v = Transpose<perm = [0, 2, 1, 3]>(v_split)
   present_key = Concat<axis = 2>(past_key, k)
   present_value = Concat<axis = 2>(past_value, v)
   keys = Transpose<perm = [0, 1, 3, 2]>(present_key)
   products = MatMul(q, keys)
   scaled = Mul(products, scale)
   rows = Unsqueeze(places, second)
   later = Greater(every_place, rows)
   is_padding = Equal(attention_mask, first)
   padding = Unsqueeze(is_padding, between)
   hidden = Or(later, padding)
   seen = Where(hidden, far, scaled)
   weights = Softmax<axis = -1>(seen)
   mixed = MatMul(weights, present_value)
   mixed_split = Transpose<perm = [0, 2, 1, 3]>(mixed)
   mixed_flat = Reshape(mixed_split, joined)
   attention = MatMul(mixed_flat, wo)
   y = Add(x, attention)
   logits = MatMul(y, head)
}
"""


def write_model(folder: Path, tokens: int, ends: Sequence[int], pad: int) -> None:
    """``model.onnx`` and ``genai_config.json`` of a model that scores so many tokens."""
    import onnx

    text = _GRAPH
    for name, value in {
        "HEADS": HEADS, "SIZE": SIZE, "WIDTH": WIDTH, "TOKENS": tokens, "SCALE": SIZE**-0.5,
    }.items():  # fmt: skip
        text = text.replace(name, str(value))
    model = onnx.parser.parse_model(text)
    for value in (*model.graph.input, *model.graph.output):
        value.name = _NAMES.get(value.name, value.name)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [_NAMES.get(name, name) for name in names]
    draw = np.random.default_rng(0)
    square = (WIDTH, WIDTH)
    for name, shape in {
        "embeddings": (tokens, WIDTH), "positions": (POSITIONS, WIDTH), "head": (WIDTH, tokens),
        "wq": square, "wk": square, "wv": square, "wo": square,
    }.items():  # fmt: skip
        weights = draw.normal(0, 0.5, shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    onnx.checker.check_model(model)
    onnx.save(model, folder / "model.onnx")
    (folder / "genai_config.json").write_text(json.dumps(_config(tokens, ends, pad)))


def _config(tokens: int, ends: Sequence[int], pad: int) -> dict[str, object]:
    decoder = {
        "filename": "model.onnx",
        "head_size": SIZE,
        "hidden_size": WIDTH,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "num_hidden_layers": 1,
        "session_options": {"intra_op_num_threads": 1},
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }
    return {
        "model": {
            "type": "decoder",
            "decoder": decoder,
            "vocab_size": tokens,
            "context_length": POSITIONS,
            "bos_token_id": 0,
            "eos_token_id": list(ends),
            "pad_token_id": pad,
        },
        "search": {"max_length": POSITIONS, "past_present_share_buffer": False},
    }
