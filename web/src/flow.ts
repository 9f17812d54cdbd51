// One flow: what it did over time, how it left slow start, and what its algorithm knows.

import { type Attached, type Change, type Detail, live } from "./api";
import { Bars } from "./bars";
import { Chart } from "./chart";
import { fill, h, say, text } from "./dom";
import * as format from "./format";
import { Past } from "./past";
import { color, onTheme } from "./theme";

const SCOPES = [
	["beginning", "Slow start"],
	["recent", "Last 30 s"],
	["life", "Whole life"],
] as const;
type Scope = (typeof SCOPES)[number][0];

const TILES = ["cwnd", "ssthresh", "in flight", "RTT", "min RTT", "rate", "delivered", "sent again"] as const;

export function flowView(main: HTMLElement, id: string, heard: (attached: Attached) => void): () => void {
	const pasts: Record<Scope, Past> = { beginning: new Past(), recent: new Past(), life: new Past() };
	let chosen: Scope | null = null;
	let detail: Detail | null = null;
	let saidExit = "";

	const title = h("h1", {}, "Flow");
	const chips = h("p", { class: "chips" });
	const story = h("p", { class: "story" }, "Waiting for the flow …");
	const tiles = TILES.map((name) => {
		const value = h("dd", {}, "–");
		return { value, element: h("div", { class: "tile" }, h("dt", {}, name), value) };
	});
	const buttons = SCOPES.map(([scope, label]) =>
		h("button", { type: "button", "aria-pressed": "false", "data-scope": scope, click: () => choose(scope) }, label),
	);
	const charts = {
		sequence: new Chart("Time-sequence", "bytes sent and acknowledged over time"),
		window: new Chart("Window", "congestion window, threshold and segments in flight over time"),
		rtt: new Chart("RTT", "round-trip time over its minimum; what is between them is queue"),
		rate: new Chart("Delivery rate by round", "bytes acknowledged in a round trip over its duration"),
	};
	const bars = new Bars();
	const evidence = h("section", { class: "card evidence" });
	const parameters = h("section", { class: "card" });
	fill(
		main,
		h("p", { class: "back" }, h("a", { href: "#/flows" }, "← All flows")),
		title,
		chips,
		story,
		h("dl", { class: "tiles" }, ...tiles.map((tile) => tile.element)),
		h("div", { class: "scopes", role: "group", "aria-label": "Time shown" }, ...buttons),
		h("div", { class: "charts" }, charts.sequence.element, charts.window.element, charts.rtt.element, charts.rate.element),
		h("div", { class: "charts" }, evidence, parameters),
	);

	function choose(scope: Scope): void {
		chosen = scope;
		schedule();
	}

	/** What is worth seeing first: the slow start where it was seen, else all there is. */
	function scope(): Scope {
		if (chosen && (chosen !== "recent" || detail?.recent)) return chosen;
		const exit = detail?.exit;
		const first = pasts.beginning.columns.at_us[0];
		const seen = detail && first != null && (!exit || first <= detail.started_us + exit.since_start_us);
		return seen && detail?.state !== "adopted" ? "beginning" : "life";
	}

	let scheduled = 0;
	function schedule(): void {
		if (!scheduled) scheduled = requestAnimationFrame(draw);
	}

	function draw(): void {
		scheduled = 0;
		if (!detail) return;
		const flow = detail;
		text(title, `${format.end(flow.local_address, flow.local_port)} → ${format.end(flow.remote_address, flow.remote_port)}`);
		fill(
			chips,
			h("span", { class: "chip algorithm" }, flow.algorithm),
			h("span", { class: `chip ${flow.state}` }, format.words(flow.state)),
			flow.exit && h("span", { class: `chip reason ${flow.exit.reason}` }, `exit: ${format.words(flow.exit.reason)}`),
			flow.rounds_only != null && h("span", { class: "chip" }, `by rounds only: ${flow.rounds_only}`),
		);
		const said = format.exitInWords(flow);
		text(story, said);
		if (said !== saidExit && saidExit) say(said);
		saidExit = said;
		const values = [
			format.segments(flow.cwnd_segments),
			format.segments(flow.ssthresh_segments),
			format.segments(flow.in_flight_segments),
			format.time(flow.rtt_us),
			format.time(flow.min_rtt_us),
			format.rate(flow.rate_bps),
			format.bytes(flow.acknowledged_bytes),
			format.bytes(flow.retransmitted_bytes),
		];
		tiles.forEach((tile, number) => text(tile.value, values[number] ?? ""));
		const now = scope();
		for (const button of buttons) {
			button.setAttribute("aria-pressed", String(button.dataset["scope"] === now));
			if (button.dataset["scope"] === "recent") button.disabled = !flow.recent;
		}
		plot(flow, pasts[now]);
		showEvidence(flow);
	}

	function plot(flow: Detail, past: Past): void {
		const { columns } = past;
		const seconds = (us: number): number => (us - flow.started_us) / 1e6;
		const x = columns.at_us.map((us) => seconds(us ?? 0));
		const exit = flow.exit ? flow.exit.since_start_us / 1e6 : null;
		const common = { x, exit, exitLabel: flow.exit ? format.words(flow.exit.reason) : "", began: 0 };
		const [c0, c1, c2, c3] = [color("c0"), color("c1"), color("c2"), color("c3")];
		const segments = (value: number): string => format.count(Math.round(value));
		charts.sequence.draw({
			...common,
			curves: [
				{ label: "sent", color: c1, values: columns.sent_bytes, dash: [5, 3] },
				{ label: "acknowledged", color: c0, values: columns.acknowledged_bytes },
			],
			areas: [{ between: [0, 1], color: `${c1}22` }],
			show: format.bytes,
		});
		charts.window.draw({
			...common,
			curves: [
				{ label: "cwnd, most", color: c0, values: columns.cwnd_max_segments, edge: true },
				{ label: "cwnd, least", color: c0, values: columns.cwnd_min_segments, edge: true },
				{ label: "in flight, most", color: c2, values: columns.in_flight_max_segments, edge: true },
				{ label: "in flight, least", color: c2, values: columns.in_flight_min_segments, edge: true },
				{ label: "in flight", color: c2, values: columns.in_flight_segments, width: 1.5, dash: [2, 2] },
				{ label: "ssthresh", color: c3, values: threshold(columns), dash: [8, 4], steps: true },
				{ label: "cwnd", color: c0, values: columns.cwnd_segments },
			],
			areas: [
				{ between: [0, 1], color: `${c0}33` },
				{ between: [2, 3], color: `${c2}2a` },
			],
			show: segments,
		});
		const least = columns.rtt_us.map(() => flow.min_rtt_us);
		charts.rtt.draw({
			...common,
			curves: [
				{ label: "most", color: c1, values: columns.rtt_max_us, edge: true },
				{ label: "minimum", color: c0, values: least, dash: [4, 3] },
				{ label: "RTT", color: c1, values: columns.rtt_us },
			],
			areas: [{ between: [0, 1], color: `${c1}33` }],
			show: (us) => format.time(Math.round(us)),
		});
		charts.rate.draw({
			...common,
			curves: [{ label: "rate", color: c2, values: columns.rate_bps, steps: true }],
			show: format.rate,
		});
	}

	function showEvidence(flow: Detail): void {
		const { exports, units, picture, parameters: set } = flow.evidence;
		const rows = Object.entries(exports).map(([name, value]) => {
			const shown = Array.isArray(value) ? `${value.length} values, most ${format.count(Math.max(0, ...value))}` : format.count(value);
			return h("tr", {}, h("th", { scope: "row" }, format.words(name)), h("td", {}, shown), h("td", { class: "unit" }, units[name] ?? ""));
		});
		const gauge = picture?.gauge;
		const most = gauge ? Math.max(100, gauge.threshold_pct * 2) : 100;
		bars.draw(picture?.bars ?? [], picture?.bars_unit ?? "");
		fill(
			evidence,
			h("h2", {}, `What ${flow.algorithm} knows`),
			gauge &&
				h(
					"label",
					{ class: "gauge" },
					`${picture.title} ${gauge.value_pct} %, leaves from ${gauge.threshold_pct} % on`,
					h("meter", { min: 0, max: most, high: gauge.threshold_pct, value: Math.min(gauge.value_pct, most) }),
				),
			picture && h("p", { class: "quiet" }, ...(gauge ? [] : [`${picture.title}: `]), picture.lines.join("; ")),
			picture && picture.bars.length > 0 && bars.element,
			rows.length > 0
				? h("details", { open: !picture }, h("summary", {}, `All ${rows.length} values`), h("table", { class: "values" }, h("tbody", {}, ...rows)))
				: h("p", { class: "quiet" }, "It keeps nothing that is worth showing."),
		);
		const open = evidence.dataset["open"];
		const details = evidence.querySelector("details");
		if (details) {
			if (open) details.open = open === "yes";
			details.addEventListener("toggle", () => {
				evidence.dataset["open"] = details.open ? "yes" : "no";
			});
		}
		fill(
			parameters,
			h("h2", {}, "Parameters of this flow"),
			h("p", { class: "quiet" }, `Generation ${flow.parameters_generation} of set ${flow.parameter_set}. `, h("a", { href: "#/algorithms" }, "Tune them")),
			h(
				"table",
				{ class: "values" },
				h("tbody", {}, ...Object.entries(set).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, String(value))))),
			),
		);
	}

	const query = new URLSearchParams({ flow: id, limit: "1" });
	const close = live(query, {
		flow(next) {
			const take = (name: Scope, change: Change | null): void => {
				if (change) pasts[name].take(change);
			};
			take("beginning", next.beginning);
			take("life", next.life);
			take("recent", next.recent);
			detail = next;
			schedule();
		},
		gone() {
			if (!detail) text(story, "This flow is not known: it has ended long ago, or has sent nothing since the server began.");
		},
		attached: heard,
	});
	const unlisten = onTheme(() => {
		for (const chart of Object.values(charts)) chart.forget();
		schedule();
	});
	return () => {
		close();
		unlisten();
		cancelAnimationFrame(scheduled);
		for (const chart of Object.values(charts)) chart.destroy();
	};
}

/** A threshold far above the window says no more than that it is above, and would flatten all else. */
function threshold(columns: Past["columns"]): (number | null)[] {
	const most = Math.max(1, ...columns.cwnd_max_segments.map((value) => value ?? 0));
	return columns.ssthresh_segments.map((value) => (value == null || value > most * 2 ? null : value));
}
