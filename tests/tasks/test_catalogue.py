"""The catalogue names every stage once, and each name leads to a function of that name."""

import pkgutil

from tasks.catalogue import STAGES


def test_every_stage_resolves_to_its_function() -> None:
    for name, stage in STAGES.items():
        function = pkgutil.resolve_name(stage.fn)
        assert (name, function.__name__) == (stage.name, stage.name)
        assert stage.version >= 1 and stage.retries >= 0
