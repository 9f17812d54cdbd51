"""The package does what the programs do, to the digit."""

import inspect
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import capture
import pandas
import polars
import pyarrow
import pyarrow.parquet

import onramp

LABORATORY = os.environ["ONRAMP_LAB"]
RECORDED = pathlib.Path(__file__).parents[2] / "recording/src/tests/recorded"
# What the functions call otherwise, or do not have: they print nothing, and a path alone is simulated as a profile.
OTHERWISE = {"samples", "path", "write_profile"}


def said(*words, where=None):
    """What a program prints as JSON."""
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, cwd=where)
    assert done.returncode in (0, 5), done.stderr
    return json.loads(done.stdout)


class Simulated(unittest.TestCase):
    def test_a_comparison_is_that_of_the_program_to_the_digit(self):
        result = onramp.simulate("leo", ["cubic", "search:threshold_pct=20"], repetitions=3, bytes="3M", seed=5, extra_rtt="10ms")
        words = [
            "--arms",
            "cubic,search:threshold_pct=20",
            "--profile",
            "leo",
            "-n",
            "3",
            "--bytes",
            "3M",
            "--seed",
            "5",
            "--extra-rtt",
            "10ms",
        ]
        program = said(LABORATORY, "sim", "compare", *words)
        self.assertEqual(result.json, program)
        runs = [run for arm in program["arms"] for run in arm["runs"]]
        table = result["runs"]
        self.assertEqual(table["seconds"], [run["seconds"] for run in runs])
        self.assertEqual(table["digest"], [run["digest"] for run in runs])
        self.assertEqual(table["exit_window_bytes"], [run["exit"] and run["exit"]["window_bytes"] for run in runs])
        self.assertEqual(table["repetition"], [0, 1, 2] * 2)
        self.assertEqual(list(result), ["runs"])

    def test_every_library_takes_the_tables_with_their_units(self):
        result = onramp.simulate("geo", "ramp", repetitions=2, bytes=2_000_000, samples=True)
        runs, samples = result["runs"], result["samples"]
        arrow = pyarrow.table(runs)
        self.assertEqual(arrow.schema.field("goodput_bps").metadata[b"unit"], b"bit/s")
        self.assertEqual(runs.units["exit_window_bytes"], "bytes")
        self.assertEqual(arrow["seconds"].to_pylist(), runs["seconds"])
        self.assertEqual(pyarrow.schema(runs), arrow.schema)
        self.assertEqual(polars.DataFrame(samples)["cwnd_segments"].to_list(), samples["cwnd_segments"])
        self.assertEqual(pandas.DataFrame.from_arrow(samples).shape, (len(samples), len(samples.columns)))
        self.assertEqual(samples.to_pandas()["smoothed_rtt_us"].max(), max(runs["max_rtt_us"]))
        self.assertEqual(samples.to_polars().height, samples.to_arrow().num_rows)
        # What was there until the end of slow start: no threshold.
        self.assertIsNone(samples["ssthresh_segments"][0])

    def test_several_flows_are_a_table_of_their_own(self):
        result = onramp.simulate("terrestrial", "cubic", repetitions=1, bytes="1M", flows=3)
        flows = [flow["seconds"] for flow in result.json["arms"][0]["runs"][0]["flows"]]
        self.assertEqual(result["flows"]["seconds"], flows)
        self.assertEqual(result["flows"]["flow"], [0, 1, 2])

    def test_a_sweep_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as place:
            result = onramp.sweep(arms=["plain", "oracle"], paths=3, seed=7, output=f"{place}/python")
            program = said(
                LABORATORY,
                "sim",
                "sweep",
                "--arms",
                "plain,oracle",
                "--paths",
                "3",
                "--seed",
                "7",
                "-o",
                f"{place}/program",
            )
            self.assertEqual(result.json, program)
            self.assertEqual(result["runs"]["arm"], ["plain", "oracle"] * 3)
            self.assertEqual(result["runs"].units["duration_ns"], "ns")
            for which in ("python", "program"):
                read = onramp.read(f"{place}/{which}")
                self.assertEqual((read.kind, read.json), ("sweep", program))
                self.assertTrue(pyarrow.table(read["runs"]).equals(pyarrow.table(result["runs"])))
            with self.assertRaisesRegex(ValueError, "holds another sweep: its seed differs"):
                onramp.sweep(arms=["plain", "oracle"], paths=3, seed=8, output=f"{place}/python")

    def test_an_algorithm_of_ones_own_is_an_arm(self):
        with tempfile.TemporaryDirectory() as place:
            said(LABORATORY, "new", "mine", "-o", place)
            said(LABORATORY, "build", f"{place}/mine.h")
            mine = pathlib.Path(place, "mine.o")
            result = onramp.simulate("geo", mine, repetitions=1, bytes="2M")
            program = said(LABORATORY, "sim", "run", str(mine), "--bytes", "2M")
            self.assertEqual(result.json, program)
            self.assertEqual(onramp.replay(RECORDED, mine)["findings"]["algorithm"][0], "mine")

    def test_what_is_built_anew_takes_the_place_of_what_it_was_and_an_algorithm_that_breaks_is_an_error(self):
        with tempfile.TemporaryDirectory() as place:
            said(LABORATORY, "new", "wild", "-o", place)
            header = pathlib.Path(place, "wild.h")
            wild = header.with_suffix(".o")
            said(LABORATORY, "build", str(header))
            onramp.simulate("geo", wild, repetitions=1, bytes="2M")
            late = "\tif (ack->bytes_acked > 50000)\n\t\t((u32 *)state)[ack->bytes_acked] = 1;\n"
            first = "\tverdict->outcome = OUTCOME_NO_RTT_SAMPLE;\n"
            header.write_text(header.read_text().replace(first, late + first, 1))
            said(LABORATORY, "build", str(header))
            with self.assertRaisesRegex(ValueError, "wild_on_ack"):
                onramp.simulate("geo", wild, repetitions=1, bytes="2M")

    def test_functions_have_the_options_of_the_programs(self):
        for verb, function, first in (("compare", onramp.simulate, "profile"), ("sweep", onramp.sweep, "population")):
            options = {name.replace("-", "_") for name in onramp._native.options(verb)} - {"help", "version"}
            parameters = inspect.signature(function).parameters
            self.assertEqual(set(parameters) - OTHERWISE, options - OTHERWISE)
            self.assertEqual(next(iter(parameters)), first)

    def test_defaults_are_those_of_the_programs(self):
        arms = onramp.simulate(repetitions=1, bytes="1M").json
        self.assertEqual(arms, said(LABORATORY, "sim", "compare", "-n", "1", "--bytes", "1M"))
        self.assertEqual(inspect.signature(onramp.simulate).parameters["repetitions"].default, 10)
        self.assertEqual(inspect.signature(onramp.sweep).parameters["paths"].default, 1000)


class Recorded(unittest.TestCase):
    def test_a_recording_has_its_tables_and_none_is_null(self):
        recording = onramp.read(RECORDED)
        self.assertEqual((recording.kind, recording.problems), ("recording", []))
        self.assertEqual(recording.json["schema"], 1)
        self.assertEqual(list(recording), ["flows", "acks", "exits", "states", "parameters"])
        acks = pyarrow.table(recording["acks"])
        parquet = pyarrow.concat_tables(pyarrow.parquet.read_table(file) for file in sorted(RECORDED.glob("acks-*")))
        self.assertEqual(acks["cwnd_segments"].to_pylist(), parquet["cwnd_segments"].to_pylist())
        self.assertEqual(acks["at_us"].to_pylist(), parquet["at_us"].to_pylist())
        thresholds = [None if value >= 0x7FFFFFFF else value for value in parquet["ssthresh_segments"].to_pylist()]
        self.assertEqual(acks["ssthresh_segments"].to_pylist(), thresholds)
        flags = [bool(value & 4) for value in parquet["flags"].to_pylist()]
        self.assertEqual(acks["cwnd_limited"].to_pylist(), flags)
        self.assertEqual(recording["acks"].units["rtt_us"], "us")
        self.assertIn(b"sample of this ACK", acks.schema.field("rtt_us").metadata[b"help"])

    def test_a_replay_is_that_of_the_program(self):
        result = onramp.replay(RECORDED, ["search", "hystart"], sweep="search.threshold_pct=10,20")
        onramp_ = os.path.join(os.path.dirname(LABORATORY), "onramp")
        words = ["--algorithm", "search,hystart", "--sweep", "search.threshold_pct=10,20"]
        self.assertEqual(result.json, said(onramp_, "replay", str(RECORDED), *words))
        findings = [finding for flow in result.json["flows"] for finding in flow["findings"]]
        self.assertEqual(result["findings"]["algorithm"], [finding["algorithm"] for finding in findings])
        windows = [finding["exit"] and finding["exit"]["window_bytes"] for finding in findings]
        self.assertEqual(result["findings"]["exit_window_bytes"], windows)
        self.assertEqual(result["findings"]["settings"][:2], ["threshold_pct=10", "threshold_pct=20"])
        self.assertGreater(len(result["points"]), 20)
        profile = onramp.replay(RECORDED, profile="geo")
        self.assertEqual(profile.json, said(onramp_, "replay", str(RECORDED), "--profile", "geo"))

    def test_a_capture_is_read(self):
        with tempfile.TemporaryDirectory() as place:
            path = pathlib.Path(place, "slow.pcap")
            capture.write(path, segments=500)
            flows = onramp.read(path)["flows"]
            self.assertEqual((flows["local_address"][0], flows["local_port"][0]), ("192.0.2.1", 5001))

    def test_a_result_of_the_lab_is_read(self):
        golden = sorted(RECORDED.parents[3].glob("tests/golden/6.12-*.json"))[0]
        result = onramp.read(golden)
        self.assertEqual((result.kind, result.json["arms"]), ("result", json.loads(golden.read_text())["arms"]))
        self.assertEqual(result["runs"]["seconds"][0], result.json["arms"][0]["runs"][0]["seconds"])


class Written(unittest.TestCase):
    def test_times_are_numbers_of_seconds_or_texts(self):
        def goodput(**options):
            return onramp.simulate(arms="cubic", repetitions=1, **options)["runs"]["goodput_bps"]

        for given, numbers, texts in [
            ({}, dict(seconds=2.0, timeout=60, extra_rtt=0.02), dict(seconds="2s", timeout="1m", extra_rtt="20ms")),
            (dict(bytes="1M", object="100k"), dict(think=0.00001), dict(think="10us")),
            (dict(bytes="1M", block="100k"), dict(every=2), dict(every="2s")),
        ]:
            self.assertEqual(goodput(**given, **numbers), goodput(**given, **texts))


class Refused(unittest.TestCase):
    def refused(self, sentence, function, *arguments, kind=ValueError, **options):
        with self.assertRaisesRegex(kind, sentence):
            function(*arguments, **options)

    def test_bad_input_is_named_as_by_the_programs(self):
        self.refused("there is no arm", onramp.simulate, arms="vegas")
        self.refused("profile", onramp.simulate, "goe")
        self.refused("is not a size", onramp.simulate, bytes="many")
        self.refused("1 s to 24 h", onramp.simulate, timeout="25h")
        self.refused("--object", onramp.simulate, think="1s")
        self.refused("threshold_pct", onramp.simulate, arms="search:threshold_pct=101")
        self.refused("give base=cubic or base=reno", onramp.simulate, arms="inflight:base=bbr")
        self.refused("10000000", onramp.sweep, paths=0)
        self.refused("cannot read population none.toml", onramp.sweep, "none.toml")
        self.refused('there is no algorithm "serach"', onramp.replay, RECORDED, "serach")
        self.refused("no acknowledgments of flow 1 ", onramp.replay, RECORDED, "search", flow=1)
        self.refused("give an algorithm, or a profile", onramp.replay, RECORDED)
        self.refused('no column "rtt"; there are at_us', onramp.read(RECORDED)["acks"].__getitem__, "rtt", kind=KeyError)
        self.refused("no table 'drops'; there are flows", onramp.read(RECORDED).__getitem__, "drops", kind=KeyError)
        self.refused("cannot read /nowhere", onramp.read, "/nowhere", kind=FileNotFoundError)
        self.refused("cannot read /nowhere", onramp.replay, "/nowhere", "search", kind=FileNotFoundError)
        self.refused("is no recording", onramp.read, __file__)
        with self.assertRaises(TypeError):
            onramp.simulate(repetition=3)

    def test_what_is_damaged_is_a_problem(self):
        with tempfile.TemporaryDirectory() as place:
            for file in RECORDED.iterdir():
                pathlib.Path(place, file.name).write_bytes(file.read_bytes())
            damaged = pathlib.Path(place, "acks-000001.parquet")
            content = bytearray(damaged.read_bytes())
            content[100] ^= 1
            damaged.write_bytes(content)
            recording = onramp.read(place)
            self.assertNotIn("acks", recording)
            self.assertIn("flows", recording)
            self.assertTrue(
                any("acks-000001.parquet is damaged" in problem for problem in recording.problems), recording.problems
            )


class Interpreter(unittest.TestCase):
    def test_other_threads_run_meanwhile(self):
        ticks = []
        ended = threading.Event()

        def tick():
            while not ended.wait(0.005):
                ticks.append(None)

        thread = threading.Thread(target=tick)
        thread.start()
        onramp.simulate("geo", "cubic", repetitions=20, bytes="20M")
        ended.set()
        thread.join()
        self.assertGreater(len(ticks), 5)

    def test_control_c_ends_a_computation(self):
        program = """
import os, signal, sys, threading
import onramp
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    onramp.simulate("geo", "cubic", repetitions=10000, bytes="20M")
except KeyboardInterrupt:
    print("interrupted", flush=True)
onramp.simulate("geo", "cubic", repetitions=1, bytes="1M")
print("goes on")
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd="/")
        self.assertEqual((done.stdout, done.returncode), ("interrupted\ngoes on\n", 0), done.stderr)

    def test_figures_are_drawn(self):
        import matplotlib

        matplotlib.use("agg")
        simulated = onramp.simulate("geo", ["cubic", "ramp"], repetitions=1, bytes="5M", samples=True)
        for result, curves in (
            (simulated, 3),
            (onramp.replay(RECORDED, "fixed", set="exit_window_bytes=20000"), 2),
            (onramp.read(RECORDED), 1),
        ):
            figure = onramp.plot(result)
            legend = figure.axes[0].get_legend().get_texts()
            self.assertEqual(len(legend), curves)
            self.assertGreater(max(max(line.get_ydata(), default=0) for line in figure.axes[0].lines), 0)
        with self.assertRaisesRegex(ValueError, "give samples=True"):
            onramp.plot(onramp.simulate("geo", "cubic", repetitions=1, bytes="1M"))

    def test_the_script_beside_a_figure_draws_it_in_the_format_and_width_that_are_wanted(self):
        with tempfile.TemporaryDirectory() as place:
            made = subprocess.run([LABORATORY, "model", "bod", "-o", "bod.svg"], cwd=place, capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
            draw = [sys.executable, "bod.py"]
            for kind, begin in (("pdf", b"%PDF"), ("png", b"\x89PNG"), ("svg", b"<?xml")):
                subprocess.run([*draw, "--format", kind, "--output", f"drawn.{kind}", "--log", "x"], cwd=place, check=True)
                self.assertTrue(pathlib.Path(place, f"drawn.{kind}").read_bytes().startswith(begin))
            subprocess.run([*draw, "--format", "png", "--width", "7in", "--output", "wide.png"], cwd=place, check=True)
            width = int.from_bytes(pathlib.Path(place, "wide.png").read_bytes()[16:20], "big")
            self.assertEqual(width, 7 * 300)
            refused = subprocess.run([*draw, "--width", "7"], cwd=place, capture_output=True, text=True)
            self.assertEqual(refused.returncode, 2)
            drawn = pandas.read_csv(pathlib.Path(place, "bod-points.csv"))
            self.assertEqual(set(drawn["kind"]), {"line", "mark"})
            self.assertGreater(drawn["panel"].nunique(), 1)

    def test_the_version_is_that_of_the_programs(self):
        version = subprocess.run([LABORATORY, "--version"], capture_output=True, text=True).stdout
        self.assertEqual(onramp.__version__, version.split()[1])


class Notebooks(unittest.TestCase):
    def test_every_notebook_runs_and_is_kept_without_its_output(self):
        notebooks = sorted(pathlib.Path(__file__).parents[1].glob("notebooks/*.ipynb"))
        self.assertEqual(len(notebooks), 4)
        for notebook in notebooks:
            cells = [cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
            self.assertFalse(any(cell["outputs"] or cell["execution_count"] for cell in cells), notebook.name)
            program = "\n".join("".join(cell["source"]) for cell in cells)
            with self.subTest(notebook.name), tempfile.TemporaryDirectory() as place:
                capture.write(pathlib.Path(place, "slow.pcap"))
                path = f"{os.path.dirname(LABORATORY)}:{os.environ['PATH']}"
                environment = {**os.environ, "PATH": path, "MPLBACKEND": "agg"}
                words = [sys.executable, "-c", program]
                done = subprocess.run(words, capture_output=True, text=True, cwd=place, env=environment)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    failed = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - failed} passed, {failed} failed, 0 skipped")
    sys.exit(failed > 0)
