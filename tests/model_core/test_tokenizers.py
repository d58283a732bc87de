"""Words and SentencePiece: ids, unknown words, states as text, and files that are not what they were."""

from pathlib import Path
from typing import Any

import pytest

from errors import UserError
from model_core.tokenizers import fit_tokenizer, open_tokenizer, split_words

WORDS: dict[str, Any] = {"tokenizer": "words", "state": "token", "sentencepiece_model": None}


def test_the_vocabulary_is_sorted_and_begins_with_the_marks() -> None:
    entry = fit_tokenizer(["Open the drawer", "open the door!"], WORDS)
    assert entry["words"] == ["<pad>", "<unk>", "door", "drawer", "open", "the"]
    assert entry["size"] == open_tokenizer(entry).size == 6


def test_known_words_have_their_place_and_others_are_unknown() -> None:
    tokenizer = open_tokenizer(fit_tokenizer(["open the drawer"], WORDS))
    assert tokenizer.encode("OPEN, the window", None) == [3, 4, 1]


def test_state_as_text_stands_between_marks() -> None:
    entry = fit_tokenizer(["open"], WORDS | {"state": "text"})
    tokenizer = open_tokenizer(entry)
    names = [entry["words"][i] for i in tokenizer.encode("open", [0, 255])]
    assert names == ["<task>", "open", "<state>", "<0>", "<255>", "<action>"]


def test_words_are_split_at_everything_else() -> None:
    assert split_words("Pick_up the robot's\ncup (2 of 3), bitte schön") == [
        "pick",
        "up",
        "the",
        "robot's",
        "cup",
        "2",
        "of",
        "3",
        "bitte",
        "schön",
    ]


@pytest.fixture(scope="module")
def sentencepiece_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sentencepiece import SentencePieceTrainer

    folder = tmp_path_factory.mktemp("sentencepiece")
    text = folder / "text.txt"
    text.write_text("Task: open the drawer, State: 1 2 3;\nAction: \n" * 20 + "0 1 2 3 4 5 6 7 8 9\n" * 20)
    SentencePieceTrainer.train(
        input=str(text),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=60,
        hard_vocab_limit=False,
        model_type="bpe",
        minloglevel=2,
    )
    return folder / "tokenizer.model"


def test_sentencepiece_speaks_the_prompts_of_pi05(sentencepiece_file: Path) -> None:
    from sentencepiece import SentencePieceProcessor

    entry = fit_tokenizer([], {"tokenizer": "sentencepiece", "sentencepiece_model": str(sentencepiece_file)})
    tokenizer = open_tokenizer(entry, sentencepiece_file.parent)
    plain = SentencePieceProcessor(model_file=str(sentencepiece_file))
    assert tokenizer.size == entry["size"] == plain.vocab_size()
    assert tokenizer.encode(" open_the\ndrawer ", [7, 12]) == plain.encode(
        "Task: open the drawer, State: 7 12;\nAction: ", add_bos=True
    )
    assert tokenizer.encode("open the drawer", None)[0] == plain.bos_id()


def test_another_sentencepiece_file_is_refused(sentencepiece_file: Path, tmp_path: Path) -> None:
    entry = fit_tokenizer([], {"tokenizer": "sentencepiece", "sentencepiece_model": str(sentencepiece_file)})
    with pytest.raises(UserError, match="TEXT-002"):
        open_tokenizer(entry, tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_file.read_bytes() + b" ")
    with pytest.raises(UserError, match="TEXT-003"):
        open_tokenizer(entry, tmp_path)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(UserError, match="TEXT-004"):
        open_tokenizer({"kind": "bytes"})
