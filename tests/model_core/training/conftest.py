"""Training tests run on one thread."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
