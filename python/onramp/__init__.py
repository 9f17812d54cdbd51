"""Slow start of TCP: recordings, results and sweeps as tables, and simulator and replay in-process.

Functions have the options of the programs, by the same names and with the same defaults: ``onramp sim compare --extra-rtt
0ms,20ms`` is ``onramp.simulate(extra_rtt=["0ms", "20ms"])``. Sizes, times and rates are numbers (bytes, seconds, bit/s) or texts
such as ``"80M"``, ``"1m30s"`` and ``"50mbit"``. What a program would refuse raises ``ValueError`` with its sentence; a file that
the system refuses raises ``OSError``.

Other threads run while these functions compute, and Ctrl-C ends them; a run in progress ends in the background.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, Union

from . import _native
from ._native import Table, __version__
from ._plot import plot

__all__ = ["Result", "Table", "__version__", "plot", "read", "replay", "simulate", "sweep"]

Texts = Union[str, Iterable[str]]
Quantity = Union[int, float, str]


class Result(Mapping[str, Table]):
    """Tables by their names, and the JSON document that the program would print.

    Tables of a recording are read when they are first asked for.
    """

    kind: str
    """``recording``, ``result`` (of the lab or the simulator), ``sweep`` or ``replay``."""
    json: Any
    """The document; of a recording its manifest, ``None`` without one."""
    problems: list[str]
    """What could not be read, a sentence each. Reading more of a recording's tables may add some."""

    def __init__(
        self,
        kind: str,
        document: str,
        tables: dict[str, Table],
        problems: Sequence[str] = (),
        path: Optional[str] = None,
        names: Sequence[str] = (),
    ) -> None:
        self.kind = kind
        self.json = json.loads(document)
        self.problems = list(problems)
        self._tables = tables
        self._path = path
        self._names = list(names) or list(tables)

    def __getitem__(self, name: str) -> Table:
        if name not in self._tables:
            if self._path is None or name not in self._names:
                raise KeyError(f"there is no table {name!r}; there are {', '.join(self._names)}")
            self._tables[name], problems = _native.table(self._path, name)
            self.problems += [problem for problem in problems if problem not in self.problems]
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<onramp.Result, a {self.kind}, with {', '.join(self._names)}>"


def read(path: Union[str, os.PathLike[str]]) -> Result:
    """Reads what the programs write.

    path: directory of a recording (``onramp record``) or a Parquet file of one, a packet capture, qlog; ``result.json`` of
    ``onramp lab run`` or ``compare``, or its directory; directory of a sweep.

    Recordings have the tables of docs/recording.md that have rows; results ``runs`` (a row per run; ``flows`` too where a run had
    several); sweeps ``runs``. Columns have their unit in their field's metadata (``Table.units``), and a value that stands for
    none is null.
    """
    path = os.fspath(path)
    kind, (document, tables), problems, names = _native.read(path)
    return Result(kind, document, tables, problems, path if kind == "recording" else None, names)


def simulate(
    profile: Union[str, os.PathLike[str]] = "geo",
    arms: Texts = ("cubic", "plain", "search"),
    *,
    repetitions: int = 10,
    bytes: Optional[Quantity] = None,
    seconds: Optional[Quantity] = None,
    timeout: Optional[Quantity] = None,
    warm: Optional[Quantity] = None,
    seed: int = 1,
    set: Texts = (),
    object: Optional[Quantity] = None,
    think: Optional[Quantity] = None,
    block: Optional[Quantity] = None,
    every: Optional[Quantity] = None,
    flows: int = 1,
    stagger: Optional[Quantity] = None,
    competitor: Optional[str] = None,
    lead: Optional[Quantity] = None,
    objects: Iterable[Quantity] = (),
    extra_rtt: Union[Quantity, Iterable[Quantity]] = (),
    at: Texts = (),
    samples: bool = False,
) -> Result:
    """Simulates arms side by side, as ``onramp sim compare``, whose help explains the options.

    profile: link and hosts: a path, or a name that is built in.
    arms: algorithms and controls, settings after colons: ``"search:threshold_pct=10"``; also objects of your own: ``"./mine.o"``.
    samples: also a table ``samples``: what was seen of each run's first flow every 10 ms, as ``flow.csv`` of the lab.

    The table ``runs`` has a row per run; ``flows`` a row per flow where there are several. The same arguments give the same
    numbers on every machine, which are those of the program.
    """
    words = _words(
        locals(),
        [
            "repetitions",
            "bytes",
            "seconds",
            "timeout",
            "warm",
            "seed",
            "object",
            "think",
            "block",
            "every",
            "flows",
            "stagger",
            "competitor",
            "lead",
        ],
        each=["set", "at"],
        joined=["arms", "objects", "extra_rtt"],
    )
    document, tables = _native.simulate([f"--profile={os.fspath(profile)}", *words], samples)
    return Result("result", document, tables)


def sweep(
    population: Union[str, os.PathLike[str]] = "default",
    arms: Texts = ("cubic", "plain", "best", "search", "spacing", "ramp", "hystartpp", "inflight", "oracle"),
    *,
    paths: int = 1000,
    seed: int = 1,
    timeout: Optional[Quantity] = None,
    bytes: Optional[Quantity] = None,
    warm: Optional[Quantity] = None,
    jobs: Optional[int] = None,
    shard: Optional[str] = None,
    output: Union[str, os.PathLike[str], None] = None,
) -> Result:
    """Simulates arms over a population of paths, as ``onramp sim sweep``, whose help explains the options.

    population: path of a population's ``.toml`` file, or ``default``.
    output: directory of the sweep, ``runs/sweep-POPULATION-SEED`` by default. What is there is not made again.

    The table ``runs`` has a row per path and arm; ``json`` compares the arms.
    """
    words = _words(locals(), ["paths", "seed", "timeout", "bytes", "warm", "jobs", "shard"], joined=["arms"])
    if output is not None:
        words.append(f"--output={os.fspath(output)}")
    document, tables = _native.sweep([f"--population={os.fspath(population)}", *words], str(_native.__file__))
    return Result("sweep", document, tables)


def replay(
    recording: Union[str, os.PathLike[str]],
    algorithm: Texts = (),
    *,
    profile: Union[str, os.PathLike[str], None] = None,
    set: Texts = (),
    sweep: Texts = (),
    flow: Optional[int] = None,
    continue_: bool = False,
    beyond: bool = False,
    ignore_unknown: bool = False,
) -> Result:
    """Runs algorithms over recorded ACKs, as ``onramp replay``, whose help explains the options.

    recording: directory of a recording, a file of its acks, a packet capture of the sender's side, or CSV.
    algorithm: algorithms, also objects of your own (``"./mine.o"``); by default the profile's.

    The table ``findings`` has a row per flow and candidate: when it would have exited slow start, at which window, and what that
    would have cost; ``points`` what flows did, thinned out.
    """
    options = {
        "path": os.fspath(recording),
        "algorithm": _texts(algorithm),
        "profile": None if profile is None else os.fspath(profile),
        "set": _texts(set),
        "sweep": _texts(sweep),
        "flow": flow,
        "keep_going": continue_,
        "beyond": beyond,
        "ignore_unknown": ignore_unknown,
    }
    document, tables = _native.replay(options)
    result = Result("replay", document, tables)
    result.problems = result.json["problems"]
    return result


def _texts(given: Any, name: str = "") -> list[str]:
    """One text or number, or several, as texts."""
    several = [given] if isinstance(given, (str, int, float, os.PathLike)) else given
    return [_written(name, one) for one in several]


_TIMES = {"seconds", "timeout", "think", "every", "stagger", "lead", "extra_rtt"}


def _written(name: str, value: Any) -> str:
    """A value as the command line has it: a time that is a number is one of seconds."""
    if name not in _TIMES or isinstance(value, str):
        return str(value)
    return (f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)) + "s"


def _words(given: dict[str, Any], plain: Sequence[str], each: Sequence[str] = (), joined: Sequence[str] = ()) -> list[str]:
    """Parameters as words of the command line."""
    words = [f"--{name}={_written(name, given[name])}" for name in plain if given[name] is not None]
    words += [f"--{name}={text}" for name in each for text in _texts(given[name])]
    lists = [(name, ",".join(_texts(given[name], name))) for name in joined]
    return words + [f"--{name.replace('_', '-')}={text}" for name, text in lists if text]
