"""Rotation and attention in PyTorch, eager or compiled, as a process that answers on standard output.

python operations.py TASK eager|compiled

The protocol and the inputs are those of src/peers/mod.rs and src/task.rs. CoPE follows the formula of Golovneva et al.,
2024: gates are sigmoids of the logits, a key's position is the sum of the gates from it to the query, and q times the
position embeddings is interpolated there.
"""

import json
import sys
import time

import torch

QUERY_HEADS, KEY_HEADS, CHANNELS = 32, 8, 128
ATTENTION_HEADS, ATTENTION_CHANNELS, POSITIONS = 8, 64, 64
BASE = 10_000.0

DEVICE = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")


def noise(seed, shape):
    x = ((torch.arange(torch.Size(shape).numel()) | seed << 24) * 0x9E3779B1) & 0xFFFFFFFF
    x = ((x ^ x >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
    x = x ^ x >> 13
    return ((x >> 8).float() / (1 << 23) - 1).reshape(shape).to(DEVICE)


def cosines(start, tokens):
    """Angles in f32, as transformers makes them."""
    frequencies = 1 / BASE ** (torch.arange(0, CHANNELS, 2).float() / CHANNELS)
    angles = torch.outer(torch.arange(start, start + tokens).float(), frequencies).to(DEVICE)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, first * sin + second * cos), -1).flatten(-2)


def rotation(q, k, cos, sin):
    return rotate(q, cos, sin), rotate(k, cos, sin)


def attention(q, k, v):
    return (torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),)


def cope(q, k, v, embeddings, hidden):
    logits = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(hidden, -torch.inf)
    positions = logits.sigmoid().flip(-1).cumsum(-1).flip(-1).clamp(max=embeddings.shape[-1] - 1)
    below = positions.floor()
    at = q @ embeddings
    bias = torch.lerp(at.gather(-1, below.long()), at.gather(-1, positions.ceil().long()), positions - below)
    return ((logits + bias).softmax(-1) @ v,)


def prepare(task):
    tokens = task["tokens"]
    if task["operation"] == "rotation":
        q, k = (noise(seed, (1, heads, tokens, CHANNELS)) for seed, heads in enumerate((QUERY_HEADS, KEY_HEADS)))
        return rotation, (q, k, *cosines(task["start"], tokens))
    q, k, v = (noise(seed, (1, ATTENTION_HEADS, tokens, ATTENTION_CHANNELS)) for seed in range(3))
    if task["operation"] == "attention":
        return attention, (q, k, v)
    hidden = torch.ones(tokens, tokens, dtype=torch.bool, device=DEVICE).triu(1)
    return cope, (q, k, v, noise(3, (1, 1, ATTENTION_CHANNELS, POSITIONS)), hidden)


def run(operation, inputs):
    results = operation(*inputs)
    if DEVICE.type != "cpu":
        torch.accelerator.synchronize()
    return results


@torch.inference_mode()
def main(task, mode):
    operation, inputs = prepare(json.loads(task))
    if mode == "compiled":
        operation = torch.compile(operation)
    answer = torch.cat([result.flatten() for result in run(operation, inputs)]).cpu()
    print("ready", flush=True)
    for request in sys.stdin:
        if request.strip() == "answer":
            print(json.dumps(answer.tolist()), flush=True)
            continue
        used, begin = time.process_time(), time.perf_counter()
        run(operation, inputs)
        wall, processor = time.perf_counter() - begin, time.process_time() - used
        print(json.dumps({"wall": wall, "processor": processor}), flush=True)


main(*sys.argv[1:])
