"""No name of a data set leads out of its folder."""

import pytest

from data_lake.names import ensure_name
from errors import UserError


@pytest.mark.parametrize("name", ["a", "gr1_v2.0-a", "9", "x" * 100])
def test_names(name: str) -> None:
    ensure_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "a b", "-a", "x" * 101, "a\n", "ä"])
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(UserError) as refused:
        ensure_name(name)
    assert refused.value.code == "LAKE-034"
