#!/usr/bin/env python3
"""Draws the figure beside this file from its points, with matplotlib alone: pip install matplotlib."""

import argparse
import collections
import csv
import json
import pathlib

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

HERE = pathlib.Path(__file__)
FIGURE = json.loads(r"""
@FIGURE@
""")
DASHES = {"solid": "-", "long": "--", "short": ":"}


def inches(text):
    """A width such as 3.5in or 89mm, in inches."""
    for unit, size in (("in", 1.0), ("mm", 1 / 25.4), ("cm", 1 / 2.54)):
        if text.endswith(unit) and 0.5 <= float(text[: -len(unit)]) * size <= 40:
            return float(text[: -len(unit)]) * size
    raise argparse.ArgumentTypeError(f"{text}: write it as 3.5in, 89mm or 8.9cm, from 0.5in to 40in")


arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--format", choices=["pdf", "svg", "png"], default="pdf")
arguments.add_argument("--width", type=inches, default=3.5, metavar="3.5in", help="two columns have 7in")
arguments.add_argument("--log", choices=["x", "y", "both"], help="logarithmic axes besides those of the figure")
arguments.add_argument("-o", "--output", type=pathlib.Path, help="default: beside this file, with the format as suffix")
arguments = arguments.parse_args()

rows = collections.defaultdict(list)
with open(HERE.with_name(FIGURE["points"]), newline="") as file:
    for row in csv.DictReader(file):
        rows[int(row["panel"]), row["kind"], int(row["number"])].append((float(row["x"]), float(row["y"])))

pyplot.rcParams.update({"font.size": 8, "legend.fontsize": 7, "svg.hashsalt": "onramp", "svg.fonttype": "none"})
panels = FIGURE["panels"]
size = (arguments.width, 0.72 * arguments.width * len(panels))
figure, axes = pyplot.subplots(len(panels), squeeze=False, figsize=size, layout="constrained")
for at, (panel, axis) in enumerate(zip(panels, axes[:, 0])):
    for number, line in enumerate(panel["lines"]):
        x, y = zip(*rows[at, "line", number]) if rows[at, "line", number] else ((), ())
        axis.plot(x, y, DASHES[line["dash"]], color=line["colour"], label=line["name"] or None, linewidth=1)
    for number, mark in enumerate(panel["marks"]):
        axis.plot(*rows[at, "mark", number][0], "o", color=mark["colour"], label=mark["name"] or None, markersize=3)
    for number, interval in enumerate(panel["intervals"]):
        (x, low), (_, high) = rows[at, "interval", number]
        axis.errorbar(x, (low + high) / 2, (high - low) / 2, fmt="none", color=interval["colour"], capsize=2, linewidth=1)
    for number, region in enumerate(panel["regions"]):
        (left, low), (right, high) = rows[at, "region", number]
        axis.fill_between((left, right), low, high, color=region["colour"], alpha=0.25)
        axis.plot(right, high, "o", color=region["colour"], markersize=3)
        axis.annotate(region["name"], (left, high), (2, 4), textcoords="offset points", fontsize=7)
    for name, other in (("x", "both"), ("y", "both")):
        scale = "log" if panel[name]["log"] or arguments.log in (name, other) else "linear"
        getattr(axis, f"set_{name}scale")(scale)
        getattr(axis, f"set_{name}label")(panel[name]["label"])
        # A logarithmic axis has no 0.
        least = panel[name]["from"] if scale == "linear" or panel[name]["from"] > 0 else None
        getattr(axis, f"set_{name}lim")(least, panel[name]["to"])
    axis.set_title(panel["title"], fontsize=8)
    axis.grid(alpha=0.3)
    if axis.get_legend_handles_labels()[1]:
        axis.legend()
output = arguments.output or HERE.with_suffix(f".{arguments.format}")
figure.savefig(output, format=arguments.format, dpi=300, metadata={"Date": None} if arguments.format == "svg" else None)
