"""How refs look in a notebook: a small table, and for a data set the first image of some episodes."""

import html
import os
from dataclasses import fields
from typing import Any

from data_lake.files import LakePath, lake_path
from data_lake.refs import DatasetRef, Ref
from data_lake.words import printable

NUM_THUMBNAILS = 6


def table_html(ref: Ref) -> str:
    """The fields of a ref as an HTML table."""
    rows = "".join(
        f"<tr style='text-align:left'><th>{each.name}</th><td>{_shown(ref, each.name)}</td></tr>"
        for each in fields(ref)
    )
    return f"<table><caption>{type(ref).__name__}</caption>{rows}</table>"


def _shown(ref: Ref, name: str) -> str:
    value: Any = {each.name: getattr(ref, each.name) for each in fields(ref)}[name]
    return _text(f"{value:,.4g}" if isinstance(value, float) else str(value))


def _text(text: str) -> str:
    return html.escape(printable(text))


def thumbnails_html(ref: DatasetRef) -> str:
    """First images of the data set's first episodes; empty where the lake is not at hand (`VLALOOP_LAKE`, ./lake)."""
    lake = lake_path(os.environ.get("VLALOOP_LAKE", "lake"))
    if not (lake / ref.uri).exists():
        return ""
    images = "".join(
        f"<img alt='{_text(title)}' title='{_text(title)}' width=96 src='{uri}'> "
        for title, uri in _first_images(lake, ref)
    )
    return f"<div>{images}</div>"


def _first_images(lake: LakePath, ref: DatasetRef) -> list[tuple[str, str]]:
    from data_lake.thumbnails import thumbnails
    from data_lake.view import read_view

    view = read_view(lake / ref.uri)
    videos = (str(lake / "datasets" / view.dataset / "videos.lance"), view.vector["videos"])
    found = []
    for episode in view.episodes[:NUM_THUMBNAILS]:
        for span in episode.spans[:1]:
            (uri,) = thumbnails(span, [0], videos=videos, meaning=view.meaning)
            found.append((f"episode {episode.episode_index}: {episode.instruction}", uri))
    return found
