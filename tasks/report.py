"""Writes the report of a run: one HTML page that needs no network and no server, videos and charts inside."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from data_lake import identity
from data_lake.files import LakePath
from data_lake.words import printable
from tasks import charts, report_facts
from tasks.lineage import Record, recipe_of

PAGE = Path(__file__).resolve().parent / "report_page"
NUM_LAYERS = 12  # shown of an export, the worst first


def build_report(lake: LakePath, chain: Mapping[str, Record], *, command: str = "") -> str:
    """The page for the records in `chain` (as `lineage` gives them): whatever is finished, up to now.

    command: how to build the same again; without it, the recipe's name alone.
    """
    if not chain:
        raise ValueError("a report needs at least one record")
    label = list(chain.values())[-1]["label"]
    return (
        pages()
        .get_template("page.html.j2")
        .render(
            label=label,
            style=Markup((PAGE / "style.css").read_text()),  # noqa: S704  our own file
            refs={stage: record["ref"] for stage, record in chain.items()},
            verdict=verdict(chain),
            command=command or f"./vlaloop run {label}",
            total_s=sum(record["provenance"]["seconds"] for record in chain.values()),
            finished=list(chain.values())[-1]["provenance"]["finished"][:16].replace("T", " "),
            settings=identity.flat(recipe_of(chain)),
            machine=list(chain.values())[-1]["provenance"],
            lineage=_lineage(chain),
            **_episodes(lake, chain),
            **_policy(lake, chain),
            **_evaluation(lake, chain),
        )
    )


def pages() -> Environment:
    """The templates of pages, in which no text becomes markup."""
    environment = Environment(
        loader=FileSystemLoader(PAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_printable,
    )
    environment.filters |= {"thousands": lambda number: f"{number:,}", "duration": duration, "percent": percent}
    return environment


def _printable(value: Any) -> Any:
    """Text of data without what no page may hold; markup stays markup."""
    return type(value)(printable(value, keep="\n\t")) if isinstance(value, str) else value


def verdict(chain: Mapping[str, Record]) -> dict[str, Any]:
    """`word` for the top of the page, the sentence below it, and whether it is the good news."""
    if "register" not in chain:
        last = list(chain)[-1]
        return {
            "word": "Not finished",
            "sentence": f"the last finished stage is {last}",
            "is_good": False,
            "checks": [],
        }
    record = chain["register"]
    ref = record["ref"]
    words = {"champion": "Champion", "challenger": "Challenger", None: "Not promoted"}
    return {
        "word": words[ref["alias"]],
        "sentence": ref["decision"],
        "is_good": ref["accepted"],
        "checks": record["summary"]["table"],
    }


def _episodes(lake: LakePath, chain: Mapping[str, Record]) -> dict[str, Any]:
    found = report_facts.findings(lake, chain["ingest"]) if "ingest" in chain else []
    drawn = None
    if "pack" in chain:
        counts, first = report_facts.fills(lake, chain["pack"])
        rate = percent(chain["pack"]["ref"]["fill_rate"], 1)
        alt = f"Histogram of packed rows by fill, from {percent(first)} to 100 %; {rate} on average."
        drawn = charts.columns(counts, alt=alt, ends=(f"{percent(first)} full", "100 %"))
    return {"findings": found, "fill_chart": drawn}


def _policy(lake: LakePath, chain: Mapping[str, Record]) -> dict[str, Any]:
    curves = report_facts.training(lake, chain["train"]) if "train" in chain else None
    layers = report_facts.layer_errors(lake, chain["export"]) if "export" in chain else []
    return {
        "training": curves,
        "loss_chart": _loss(curves.loss) if curves else None,
        "rate_chart": charts.line(
            curves.rate,
            alt=f"Samples per second over steps, median {curves.median_rate:.0f}.",
            x_unit="steps",
            smooth=12,
        )
        if curves
        else None,
        "layer_chart": _layers(layers) if layers else None,
        "num_layers": len(layers),
        "shown_layers": NUM_LAYERS,
    }


def _loss(points: Sequence[tuple[float, float]]) -> Markup:
    first, last = points[0][1], points[-1][1]
    return charts.line(points, alt=f"Loss over steps, from {first:.3g} to {last:.3g}.", x_unit="steps", smooth=12)


def _layers(layers: Sequence[tuple[str, float]]) -> Markup:
    widest = layers[0][1] or 1.0
    rows = [
        charts.Bar(label=name.removesuffix(".weight"), value=error / widest, text=percent(error, 2))
        for name, error in layers[:NUM_LAYERS]
    ]
    return charts.bars(
        rows, alt=f"Relative error of the {len(rows)} worst of {len(layers)} layers, {rows[0].text} at most."
    )


def _evaluation(lake: LakePath, chain: Mapping[str, Record]) -> dict[str, Any]:
    if "evaluate" not in chain:
        return {"told": None, "clips": [], "score_chart": None}
    ref = chain["evaluate"]["ref"]
    return {
        "told": report_facts.evaluation(lake, chain["evaluate"]),
        "clips": report_facts.clips(lake, chain["evaluate"]),
        "score_chart": _success(ref["tasks"]) if ref["tasks"] else _errors(ref),
    }


def _success(tasks: Sequence[Mapping[str, Any]]) -> Markup:
    rows = [
        charts.Bar(
            label=task["task"],
            value=task["k"] / max(1, task["n"]),
            text=f"{task['k']}/{task['n']}",
            low=task["low"],
            high=task["high"],
        )
        for task in tasks
    ]
    spoken = "; ".join(f"{row.label} {row.text}" for row in rows)
    return charts.bars(rows, alt=f"Success per task with 95 % intervals: {spoken}.")


def _errors(ref: Mapping[str, Any]) -> Markup:
    contenders = [("this policy", ref["error"]), *((name, error) for name, error in ref["baselines"])]
    widest = max(error for _, error in contenders) or 1.0
    rows = [
        charts.Bar(label=name, value=error / widest, text=f"{error:.3f}", is_muted=index > 0)
        for index, (name, error) in enumerate(contenders)
    ]
    spoken = "; ".join(f"{row.label} {row.text}" for row in rows)
    return charts.bars(rows, alt=f"Error on held-out episodes, lower is better: {spoken}.")


def _lineage(chain: Mapping[str, Record]) -> dict[str, Any]:
    by_ref = {record["ref"]["fingerprint"]: stage for stage, record in chain.items()}
    nodes = [
        charts.Node(
            name=stage,
            note=f"{record['fingerprint'][:8]}",
            inputs=tuple(by_ref[each] for each in record["identity"]["inputs"] if each in by_ref),
        )
        for stage, record in chain.items()
    ]
    spoken = "; ".join(f"{node.name} from {' and '.join(node.inputs) or 'its source'}" for node in nodes)
    longest = max(record["provenance"]["seconds"] for record in chain.values()) or 1.0
    rows = [
        {
            "line": record["summary"]["line"],
            "seconds": record["provenance"]["seconds"],
            "share": record["provenance"]["seconds"] / longest,
        }
        for record in chain.values()
    ]
    return {"graph": charts.lineage(nodes, alt=f"Lineage: {spoken}."), "rows": rows}


def duration(seconds: float) -> str:
    """`7m 44s`, `12 s`, `0.4 s`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest} s"


def percent(fraction: float, digits: int = 0) -> str:
    return f"{100 * fraction:.{digits}f} %"
