"""A flow as a figure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

if TYPE_CHECKING:
    from . import Result

Columns = dict[str, list[Any]]

# From one point of the rate to the next, seconds.
STEP = 0.1


class Curve(NamedTuple):
    label: str
    seconds: list[float]
    window: list[float]
    in_flight: list[float]
    acknowledged: Optional[list[float]]
    exits: list[tuple[float, float]]


def plot(result: Result, flow: Union[int, str, None] = None, figure: Any = None) -> Any:
    """Draws window and bytes in flight over time, with the exits from slow start, and the rate at which bytes were acknowledged.

    result: of ``simulate(…, samples=True)``, of ``replay``, or a recording that was read.
    flow: number of a flow, by default the first; of a simulation the name of an arm, by default all; in its first repetition.
    figure: a matplotlib figure to draw into.

    Returns the figure. Needs matplotlib.
    """
    from matplotlib import pyplot

    curves = list(_curves(result, flow))
    if not curves:
        raise ValueError(f"{result!r} has nothing of {flow!r} to draw: give samples=True, or record with --level ack")
    rated = [curve for curve in curves if curve.acknowledged]
    figure = figure or pyplot.figure(figsize=(7, 5 if rated else 3), layout="constrained")
    axes = figure.subplots(2 if rated else 1, sharex=True, squeeze=False)[:, 0]
    for at, curve in enumerate(curves):
        color = f"C{at}"
        axes[0].plot(curve.seconds, curve.window, color=color, label=curve.label)
        axes[0].plot(curve.seconds, curve.in_flight, color=color, alpha=0.4, linewidth=0.8)
        for seconds, window in curve.exits:
            axes[0].plot([seconds], [window], "o", color=color, markerfacecolor="none")
        if curve.acknowledged:
            axes[1].plot(*_rate(curve.seconds, curve.acknowledged), color=color)
    document = result.json or {}
    if "bdp_bytes" in document:
        axes[0].axhline(document["bdp_bytes"] / 1e6, color="gray", linestyle="--", linewidth=0.8, label="BDP")
    axes[0].set_ylabel("window, in flight (thin), MB")
    axes[0].legend()
    if rated:
        axes[1].set_ylabel("acknowledged, Mbit/s")
        if "rate_bps" in document:
            axes[1].axhline(document["rate_bps"] / 1e6, color="gray", linestyle="--", linewidth=0.8)
    axes[-1].set_xlabel("seconds since the first data")
    return figure


def _curves(result: Result, flow: Union[int, str, None]) -> Iterator[Curve]:
    for table, curves in (("samples", _simulated), ("points", _replayed), ("acks", _recorded)):
        if table in result:
            rows = _columns(result, table)
            yield from curves(result, rows, flow)
            return


def _simulated(result: Result, samples: Columns, arm: Union[int, str, None]) -> Iterator[Curve]:
    runs = _columns(result, "runs")
    first = [row for row, repetition in enumerate(runs["repetition"]) if repetition == 0]
    exits = {runs["arm"][row]: (runs["exit_seconds"][row], runs["exit_window_bytes"][row]) for row in first}
    for name in dict.fromkeys(samples["arm"]) if arm is None else [arm]:
        keep = [at == (name, 0) for at in zip(samples["arm"], samples["repetition"])]
        if any(keep):
            seconds, window = exits[name]
            yield _segments(str(name), _kept(samples, keep), [] if window is None else [(seconds, window / 1e6)])


def _replayed(result: Result, points: Columns, flow: Union[int, str, None]) -> Iterator[Curve]:
    number = points["flow"][0] if flow is None else flow
    kept = _kept(points, [one == number for one in points["flow"]])
    if not kept["flow"]:
        return
    seconds = [at / 1e6 for at in kept["since_start_us"]]
    window, in_flight = ([count / 1e6 for count in kept[name]] for name in ("window_bytes", "in_flight_bytes"))
    yield Curve(f"flow {number}", seconds, window, in_flight, None, [])
    findings = _columns(result, "findings")
    exits = zip(*(findings[name] for name in ("flow", "algorithm", "exit_since_start_us", "exit_window_bytes")))
    for one, algorithm, at, bytes_ in exits:
        if one == number and at is not None:
            yield Curve(algorithm, [], [], [], None, [(at / 1e6, bytes_ / 1e6)])


def _recorded(result: Result, acks: Columns, flow: Union[int, str, None]) -> Iterator[Curve]:
    number = acks["flow"][0] if flow is None else flow
    kept = _kept(acks, [one == number for one in acks["flow"]])
    if not kept["flow"]:
        return
    began = kept["at_us"][0]
    kept["seconds"] = [(at - began) / 1e6 for at in kept["at_us"]]
    exits = []
    if "exits" in result:
        found = _columns(result, "exits")
        rows = zip(*(found[name] for name in ("flow", "event", "at_us", "cwnd_segments", "mss_bytes")))
        exits = [
            ((at - began) / 1e6, count * mss / 1e6) for one, event, at, count, mss in rows if (one, event) == (number, "exit")
        ]
    yield _segments(f"flow {number}", kept, exits)


def _kept(columns: Columns, keep: list[bool]) -> Columns:
    return {name: list(compress(values, keep)) for name, values in columns.items()}


def _columns(result: Result, table: str) -> Columns:
    return {name: result[table][name] for name in result[table].columns}


def _segments(label: str, of: Columns, exits: list[tuple[float, float]]) -> Curve:
    window, in_flight = (
        [(count or 0) * mss / 1e6 for count, mss in zip(of[name], of["mss_bytes"])]
        for name in ("cwnd_segments", "in_flight_segments")
    )
    return Curve(label, of["seconds"], window, in_flight, of["acknowledged_bytes"], exits)


def _rate(seconds: list[float], acknowledged: list[float]) -> tuple[list[float], list[float]]:
    times, rates, last = [], [], (seconds[0], acknowledged[0])
    for at, total in zip(seconds, acknowledged):
        if at - last[0] >= STEP:
            times.append(at)
            rates.append((total - last[1]) * 8e-6 / (at - last[0]))
            last = (at, total)
    return times, rates
