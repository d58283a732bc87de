"""Instructions to token ids: a vocabulary of the data's own words, or a SentencePiece model.

A tokenizer is described by an entry of the card (JSON); `open_tokenizer` makes it, `fit_tokenizer` writes it.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from errors import UserError

PAD, UNKNOWN = "<pad>", "<unk>"
TASK, STATE, ACTION = "<task>", "<state>", "<action>"
NUM_STATE_BINS = 256
SENTENCEPIECE_FILE = "tokenizer.model"  # its name beside every card


class Tokenizer(Protocol):
    """`size` of the vocabulary, and ids of an instruction, with the state's bins (0..255) when they are text."""

    @property
    def size(self) -> int: ...

    def encode(self, instruction: str, bins: Sequence[int] | None) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class WordTokenizer:
    """`words` in the order of their ids. A word that is not among them is `<unk>`."""

    words: tuple[str, ...]

    @property
    def size(self) -> int:
        return len(self.words)

    def encode(self, instruction: str, bins: Sequence[int] | None) -> list[int]:
        tokens = split_words(instruction)
        if bins is not None:
            tokens = [TASK, *tokens, STATE, *(f"<{bin_}>" for bin_ in bins), ACTION]
        ids = _ids_of(self.words)
        return [ids.get(token, ids[UNKNOWN]) for token in tokens]


@dataclass(frozen=True, slots=True)
class SentencePieceTokenizer:
    """π0.5's prompts through a SentencePiece model, with its beginning-of-sentence token."""

    path: Path
    sha256: str

    @property
    def size(self) -> int:
        return _sentencepiece(self.path, self.sha256).vocab_size()

    def encode(self, instruction: str, bins: Sequence[int] | None) -> list[int]:
        task = instruction.strip().replace("_", " ").replace("\n", " ")
        state = "" if bins is None else " ".join(map(str, bins))
        prompt = f"{task}\n" if bins is None else f"Task: {task}, State: {state};\nAction: "
        return _sentencepiece(self.path, self.sha256).encode(prompt, add_bos=True)


def fit_tokenizer(instructions: Iterable[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The card's entry: the sorted words of `instructions`, or the SentencePiece file that `inputs` names.

    inputs: an InputSpec as a dict. The file itself is to be copied beside the card as `file`.
    Raises `UserError` TEXT-002 when the file is not there.
    """
    if inputs["tokenizer"] == "words":
        words = [PAD, UNKNOWN, *sorted({word for text in instructions for word in split_words(text)})]
        if inputs["state"] == "text":
            words += [TASK, STATE, ACTION, *(f"<{bin_}>" for bin_ in range(NUM_STATE_BINS))]
        return {"kind": "words", "words": words, "size": len(words)}
    path = Path(inputs["sentencepiece_model"] or "")
    digest = _digest_of(path)
    size = SentencePieceTokenizer(path, digest).size
    return {"kind": "sentencepiece", "file": SENTENCEPIECE_FILE, "sha256": digest, "size": size}


def open_tokenizer(entry: Mapping[str, Any], folder: Path | str = ".") -> Tokenizer:
    """The tokenizer of a card's entry; its file, if any, lies in `folder`.

    Raises `UserError` TEXT-002 for a missing file, TEXT-003 for one that is not the file of the entry.
    """
    if entry["kind"] == "words":
        return WordTokenizer(tuple(entry["words"]))
    if entry["kind"] != "sentencepiece":
        raise UserError("TEXT-004", f"unknown kind of tokenizer {entry['kind']!r}", next_step="words or sentencepiece")
    path = Path(folder) / entry["file"]
    if _digest_of(path) != entry["sha256"]:
        raise UserError(
            "TEXT-003",
            "the tokenizer is not the one that the policy was trained with",
            where=str(path),
            next_step=f"put back the file with SHA-256 {entry['sha256']}",
        )
    return SentencePieceTokenizer(path, entry["sha256"])


def merge_tokenizers(entries: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[list[int] | None]]:
    """One entry for texts that several tokenizers encoded, and for each the new id of every id; None: they stay.

    Vocabularies of words become one of all their words. Raises `UserError` TEXT-003 for different models.
    """
    first = dict(entries[0])
    if all(entry == first for entry in entries):
        return first, [None] * len(entries)
    if any(entry["kind"] != "words" for entry in entries):
        raise UserError("TEXT-003", "texts were encoded by different SentencePiece models", next_step="name one file")
    marks = [word for word in first["words"] if word.startswith("<")]
    learnt = sorted({word for entry in entries for word in entry["words"] if not word.startswith("<")})
    words = [*marks[:2], *learnt, *marks[2:]]
    ids = {word: index for index, word in enumerate(words)}
    merged = {"kind": "words", "words": words, "size": len(words)}
    return merged, [[ids[word] for word in entry["words"]] for entry in entries]


def split_words(text: str) -> list[str]:
    """Lower-case words and numbers; punctuation, underscores and white space separate."""
    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower())


@lru_cache(maxsize=8)
def _ids_of(words: tuple[str, ...]) -> dict[str, int]:
    return {word: index for index, word in enumerate(words)}


def _digest_of(path: Path) -> str:
    if not path.is_file():
        raise UserError(
            "TEXT-002",
            "the SentencePiece model is not there",
            where=str(path),
            next_step="set policy.inputs.sentencepiece_model to its file",
        )
    return _cached_digest(path, path.stat().st_size, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _cached_digest(path: Path, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _sentencepiece(path: Path, _sha256: str) -> Any:
    from sentencepiece import SentencePieceProcessor  # only policies that use it need it

    return SentencePieceProcessor(model_file=str(path))
