"""Python types from a server: ``Generator`` over vLLM or SGLang with the backend tokenfst.

    vllm serve MODEL --structured-outputs-config.backend tokenfst
    python examples/served.py http://127.0.0.1:8000/v1

    python -m sglang.launch_server --model-path MODEL --grammar-backend tokenfst
    python examples/served.py http://127.0.0.1:30000/v1 --server sglang

Needs `pip install "tokenfst[openai]"`; see docs/quickstart.md.
"""

from __future__ import annotations

import argparse
import re
from typing import Annotated, Literal

import openai
from pydantic import BaseModel, Field

from tokenfst import Endpoint, Generator


class Book(BaseModel):
    title: Annotated[str, Field(max_length=40)]
    author: Annotated[str, Field(max_length=30)]
    year: Annotated[int, Field(ge=1400, le=2100)]


def lend(title: Annotated[str, Field(max_length=30)], days: Literal[7, 14, 28] = 14) -> str:
    return f"{title}, for {days} days"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("url")
    parser.add_argument("--server", default="vllm", choices=["vllm", "sglang"])
    options = parser.parse_args(arguments)
    client = openai.OpenAI(base_url=options.url, api_key="none")
    generator = Generator(Endpoint(client, server=options.server))
    ask = [{"role": "user", "content": "Name a book."}]

    print(generator(ask, Book, max_new_tokens=80))
    print(generator("Is it a novel? ", Literal["yes", "no", "partly"]))
    print(generator("Published on ", re.compile(r"[12][0-9]{3}-(0[1-9]|1[0-2])"), max_new_tokens=20))
    print(generator.tools(ask, [lend], max_new_tokens=60).call())
    print(*generator.batch([ask] * 4, Book, max_new_tokens=80, temperature=1.0), sep="\n")
    with generator.stream(ask, Book, max_new_tokens=80) as stream:
        for piece in stream:
            print(piece, end="", flush=True)
    print()


if __name__ == "__main__":
    main()
