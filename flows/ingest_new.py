"""placeholder"""
from flows.server import loop_flow


@loop_flow(name="ingest-new")
def ingest_new(recipe: str = "gr1", inbox: str | None = None) -> None:
    """x"""
