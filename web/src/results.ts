// Results of the lab and the simulator next to each other: every measure by arm, and runs over time.

import { axisButton, logarithmic } from "./axis";
import { Chart, type Moment } from "./chart";
import { fill, h } from "./dom";
import * as format from "./format";
import { FlowCharts, type Series } from "./series";
import { color, curve, onTheme } from "./theme";

interface Run {
	valid: boolean;
	/** Given up at the limit: it counts as far as it came. */
	cut_off?: boolean;
	invalid_reason?: string;
	seed: number;
	seconds: number;
	goodput_bps: number;
	retransmitted_segments: number;
	max_rtt_us: number;
	mean_rtt_us: number;
	min_rtt_us: number | null;
	exit: { reason: string; seconds: number; window_bytes: number } | null;
	regret?: { window_to_bdp: number; early_us: number; queue_us: number | null; at_least: boolean };
}

interface Result {
	profile: string;
	clock: string;
	kernel: string;
	bytes?: number;
	bdp_bytes: number;
	base_rtt_us: number;
	rate_bps: number;
	arms: { arm: string; runs: Run[] }[];
}

/** A run's flow over time, by columns of `flow.csv`. */
type Table = Record<string, number[]>;

interface Arm {
	name: string;
	result: Result;
	runs: Run[];
	/** By number of the run. */
	tables: Map<number, Table>;
}

/** What is open: one or several results. */
let arms: Arm[] = [];
let results: Result[] = [];

interface Measure {
	title: string;
	of: (run: Run, result: Result) => number | null;
	show: (value: number) => string;
	better: "less" | "more" | "";
}

const MEASURES: Measure[] = [
	{ title: "Download time", of: (run) => run.seconds, show: (value) => `${value.toFixed(2)} s`, better: "less" },
	{ title: "Goodput", of: (run) => run.goodput_bps, show: format.rate, better: "more" },
	{
		title: "Exit / BDP",
		of: (run, result) => (run.exit ? run.exit.window_bytes / result.bdp_bytes : null),
		show: format.ratio,
		better: "",
	},
	{
		title: "Lost by leaving early",
		of: (run) => (run.regret ? run.regret.early_us / 1e6 : null),
		show: (value) => `${value.toFixed(2)} s`,
		better: "less",
	},
	{
		title: "Largest RTT",
		of: (run) => run.max_rtt_us,
		show: (value) => format.time(Math.round(value)),
		better: "less",
	},
	{
		title: "Segments retransmitted",
		of: (run) => run.retransmitted_segments,
		show: (value) => format.count(Math.round(value)),
		better: "less",
	},
];

/** CSV of numbers; what is none is NaN. */
function table(csv: string): Table {
	const [head = "", ...lines] = csv.trim().split("\n");
	const names = head.trim().split(",");
	const rows = lines.map((line) => line.split(","));
	return Object.fromEntries(names.map((name, column) => [name, rows.map((row) => Number(row[column] ?? NaN))]));
}

/** A result, with the flows of its runs by arm and number, each as CSV. */
export interface Opened {
	name: string;
	json: Result;
	flows: Record<string, Record<string, string>>;
}

export function resultsView(main: HTMLElement, opened: Opened[]): void {
	results = opened.map((one) => one.json);
	arms = opened.flatMap(({ name, json, flows }) =>
		json.arms.map((arm) => ({
			name: opened.length > 1 ? `${name}: ${arm.arm}` : arm.arm,
			result: json,
			runs: arm.runs,
			tables: new Map(Object.entries(flows[arm.arm] ?? {}).map(([run, csv]) => [Number(run), table(csv)])),
		})),
	);
	let run = 0;
	let arm = 0;
	const first = results[0] as Result;
	const numbers = [...new Set(arms.flatMap((one) => [...one.tables.keys()]))].sort((one, other) => one - other);
	const over = {
		acknowledged: new Chart("Acknowledged", "bytes acknowledged over time, a curve for each arm"),
		window: new Chart("Congestion window", "congestion window over time, a curve for each arm"),
		rtt: new Chart("Smoothed RTT", "smoothed round-trip time over time, a curve for each arm"),
		sent: new Chart("Delivery rate", "delivery rate over time, a curve for each arm"),
	};
	const charts = new FlowCharts();
	const which = h(
		"select",
		{ id: "run", change: () => choose(Number(which.value), arm) },
		...numbers.map((number) => h("option", { value: number }, `run ${number + 1}`)),
	);
	const whose = h(
		"select",
		{ id: "arm", change: () => choose(run, Number(whose.value)) },
		...arms.map((one, number) => h("option", { value: number, disabled: one.tables.size === 0 }, one.name)),
	);
	const strips = h("div", { class: "strips" });
	const detail = h("div", { class: "charts" }, ...charts.elements);
	const invalid = arms.flatMap((one) =>
		one.runs
			.filter((each) => !counts(each))
			.map((each) => `${one.name}, seed ${each.seed}: ${each.invalid_reason ?? "not valid"}`),
	);
	const cutOff = arms.flatMap((one) =>
		one.runs
			.filter((each) => each.cut_off)
			.map((each) => `${one.name}, seed ${each.seed}: ${each.invalid_reason ?? "given up at the limit"}`),
	);
	const profiles = [...new Set(results.map((one) => one.profile))].join(" and ");
	fill(
		main,
		h("h1", {}, `${arms.map((one) => one.name).join(", ")} over ${profiles}`),
		h(
			"p",
			{ class: "summary" },
			`${format.rate(first.rate_bps)}, ${format.time(first.base_rtt_us)}, a bandwidth-delay product of ` +
				`${format.bytes(first.bdp_bytes)}${first.bytes ? `; ${format.bytes(first.bytes)} each` : ""}. ` +
				`Clock: ${first.clock}${first.kernel ? `, Linux ${first.kernel}` : ""}.`,
		),
		invalid.length > 0 &&
			h(
				"details",
				{ class: "card" },
				h("summary", {}, `${invalid.length} runs do not count`),
				h("ul", {}, ...invalid.map((one) => h("li", {}, one))),
			),
		cutOff.length > 0 &&
			h(
				"details",
				{ class: "card" },
				h("summary", {}, `${cutOff.length} runs count as ≥: they were given up at the limit`),
				h("ul", {}, ...cutOff.map((one) => h("li", {}, one))),
			),
		strips,
		numbers.length > 0
			? h(
					"div",
					{},
					h("div", { class: "search" }, h("h2", {}, "Over time"), which),
					h("div", { class: "charts" }, ...Object.values(over).map((chart) => chart.element)),
					h("div", { class: "search" }, h("h2", {}, "One of them"), whose, axisButton(draw)),
					detail,
				)
			: h(
					"p",
					{ class: "quiet" },
					"There are no flows over time here: onramp-lab plot takes them from the directory of a lab run.",
				),
	);

	function choose(nextRun: number, nextArm: number): void {
		run = nextRun;
		arm = nextArm;
		draw();
	}

	function draw(): void {
		fill(strips, ...MEASURES.map(strip));
		if (numbers.length === 0) return;
		if (!arms[arm]?.tables.has(run)) {
			run = numbers.includes(run) ? run : (numbers[0] ?? 0);
			arm = Math.max(
				arms.findIndex((one) => one.tables.has(run)),
				0,
			);
		}
		which.value = String(run);
		whose.value = String(arm);
		const tables = arms.map((one) => one.tables.get(run));
		const x = [...new Set(tables.flatMap((one) => one?.seconds ?? []))]
			.filter((at) => at >= 0)
			.sort((one, other) => one - other);
		const moments: Moment[] = arms.flatMap((one, number) => {
			const exit = one.tables.has(run) ? one.runs[run]?.exit : null;
			return exit
				? [{ x: exit.seconds, label: `${one.name}: ${format.words(exit.reason)}`, color: curve(number).stroke }]
				: [];
		});
		const draw = (
			chart: Chart,
			value: (of: Table, at: number) => number,
			show: (value: number) => string,
			level?: [string, number],
		): void =>
			chart.draw({
				x,
				curves: [
					...tables.map((of, number) => ({
						label: arms[number]?.name ?? "",
						color: curve(number).stroke,
						dash: curve(number).dash,
						values: of ? onto(x, of, value) : x.map(() => null),
					})),
					...(level
						? [
								{
									label: level[0],
									color: color("quiet"),
									values: x.map(() => level[1]),
									dash: [3, 4],
									width: 1,
								},
							]
						: []),
				],
				show,
				moments,
				slowStart: null,
			});
		const column = (name: string) => (of: Table, at: number) => of[name]?.[at] ?? NaN;
		draw(over.acknowledged, column("acknowledged_bytes"), format.bytes);
		draw(over.window, (of, at) => (of.cwnd_segments?.[at] ?? NaN) * (of.mss_bytes?.[at] ?? NaN), format.bytes, [
			"BDP",
			first.bdp_bytes,
		]);
		draw(over.rtt, column("smoothed_rtt_us"), (us) => format.time(Math.round(us)), ["base RTT", first.base_rtt_us]);
		draw(over.sent, (of, at) => (of.delivery_rate_bytes_per_s?.[at] ?? NaN) * 8, format.rate, [
			"link",
			first.rate_bps,
		]);
		const chosen = arms[arm];
		const of = chosen?.tables.get(run);
		if (chosen && of) charts.draw(series(chosen, chosen.runs[run], of));
	}

	onTheme(() => {
		for (const chart of Object.values(over)) chart.forget();
		charts.forget();
		draw();
	});
	draw();
}

/** Values at other times: the newest before each. */
function onto(x: number[], of: Table, value: (of: Table, at: number) => number): (number | null)[] {
	const times = of.seconds ?? [];
	let at = -1;
	return x.map((time) => {
		while ((times[at + 1] ?? Infinity) <= time) at += 1;
		const found = at < 0 || time > (times.at(-1) ?? 0) ? NaN : value(of, at);
		return Number.isFinite(found) ? found : null;
	});
}

/** Whether a run counts: in full, or as far as it came. */
function counts(run: Run): boolean {
	return run.valid || run.cut_off === true;
}

/** One measure: a line for each arm, with its runs as rings, their mean as a mark and its interval as a bar. */
function strip(measure: Measure): HTMLElement {
	const rows = arms.map((one) => ({
		arm: one,
		values: one.runs.filter(counts).flatMap((run) => measure.of(run, one.result) ?? []),
	}));
	const intervals = rows.map(({ values }) => interval(values));
	const most =
		Math.max(
			1e-9,
			...rows.flatMap(({ values }) => values),
			...intervals.map((one) => (one ? one.mean + one.half : 0)),
		) * 1.04;
	// With a run that was given up a mean is a bound, and no arm is best by it.
	const bounds = arms.map((one) => (measure.better === "less" && one.runs.some((run) => run.cut_off) ? "≥ " : ""));
	const means = intervals.map((one, number) => (bounds[number] ? NaN : (one?.mean ?? NaN))).filter(Number.isFinite);
	const alike = means.every((mean) => mean === means[0]);
	const best = alike
		? NaN
		: measure.better === "less"
			? Math.min(...means)
			: measure.better === "more"
				? Math.max(...means)
				: NaN;
	// What reads the same is as good.
	const bestSaid = Number.isFinite(best) ? measure.show(best) : null;
	return h(
		"section",
		{ class: "card strip" },
		h("h2", {}, measure.title, measure.better && h("span", { class: "quiet" }, `${measure.better} is better`)),
		...rows.map(({ arm, values }, number) => {
			const track = h("span", { class: "dots", "aria-hidden": "true" });
			const place = (name: string, at: number, wide?: number): void => {
				const part = h("i", { class: name });
				part.style.left = `${(100 * Math.max(at, 0)) / most}%`;
				if (wide != null) part.style.width = `${(100 * wide) / most}%`;
				part.style.setProperty("--paint", curve(number).stroke);
				track.append(part);
			};
			const of = intervals[number];
			if (of) place("span", of.mean - of.half, Math.min(of.mean, of.half) + of.half);
			for (const value of values) place("run", value);
			if (of) place("mean", of.mean);
			const said = of ? (bounds[number] ?? "") + measure.show(of.mean) : "–";
			return h(
				"div",
				{ class: said === bestSaid ? "best" : "" },
				h("span", { title: arm.name }, arm.name),
				track,
				h(
					"span",
					{ class: "number", title: of ? `${of.n} runs, ± ${measure.show(of.half)} (95 %)` : "" },
					said,
				),
			);
		}),
	);
}

/** Student's t for 95 %, by degrees of freedom; beyond the last as there. */
const T = [
	12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.2, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.1, 2.09,
	2.09,
];

function interval(values: number[]): { n: number; mean: number; half: number } | null {
	const n = values.length;
	if (n === 0) return null;
	const mean = values.reduce((sum, value) => sum + value, 0) / n;
	const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
	return { n, mean, half: n > 1 ? (T[Math.min(n - 2, T.length - 1)] ?? 2) * Math.sqrt(squares / (n - 1) / n) : 0 };
}

/** A run's flow as its charts take it. */
function series(arm: Arm, run: Run | undefined, of: Table): Series {
	const keep = (of.seconds ?? []).map((at) => at >= 0);
	const column = (name: string, by = 1): (number | null)[] =>
		(of[name] ?? []).filter((_, at) => keep[at]).map((value) => (Number.isFinite(value) ? value * by : null));
	const acknowledged = column("acknowledged_bytes");
	const again = column("retransmitted_segments");
	const x = column("seconds").map((at) => at ?? 0);
	const mss = of.mss_bytes?.find((bytes) => bytes > 0) ?? 0;
	const sent = column("sent_bytes");
	const window = column("peer_window_bytes");
	const inFlight = column("in_flight_segments");
	return {
		x,
		sent,
		acknowledged,
		held: sent.map((bytes, at) => Math.max(acknowledged[at] ?? 0, (bytes ?? 0) - (inFlight[at] ?? 0) * mss)),
		windowEnd: acknowledged.map((bytes, at) => (bytes != null && window[at] ? bytes + (window[at] ?? 0) : null)),
		cwnd: column("cwnd_segments"),
		cwndSpan: null,
		ssthresh: column("ssthresh_segments"),
		inFlight,
		inFlightSpan: null,
		rtt: column("smoothed_rtt_us"),
		rttMost: null,
		minRtt: run?.min_rtt_us ?? arm.result.base_rtt_us,
		mss,
		bdp: mss ? { segments: arm.result.bdp_bytes / mss, atLeast: false } : null,
		logarithmic: logarithmic(),
		moment: null,
		rate: column("delivery_rate_bytes_per_s", 8),
		pacing: column("pacing_rate_bytes_per_s", 8),
		track: null,
		exit: run?.exit ? { x: run.exit.seconds, label: format.words(run.exit.reason) } : null,
		slowStart: run?.exit ? [0, run.exit.seconds] : null,
		incidents: again.flatMap((count, at) =>
			at > 0 && (count ?? 0) > (again[at - 1] ?? 0)
				? [{ x: x[at] ?? 0, what: "resent", acknowledged: acknowledged[at] ?? 0 }]
				: [],
		),
		others: [],
	};
}
