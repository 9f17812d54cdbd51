// One flow: what it did over time, how it left slow start, what its algorithm knows, and what others would have done.

import { type Attached, type Change, type Detail, type Happened, live, type Shadow } from "./api";
import { Bars } from "./bars";
import { fill, h, say, text } from "./dom";
import * as format from "./format";
import { othersView } from "./others";
import { Past } from "./past";
import { FlowCharts, type Series } from "./series";
import { address, recording } from "./source";
import { onTheme } from "./theme";

const SCOPES = [
	["beginning", "Slow start"],
	["recent", "Last 30 s"],
	["life", "Whole life"],
] as const;
type Scope = (typeof SCOPES)[number][0];

const TILES = ["cwnd", "ssthresh", "in flight", "RTT", "min RTT", "rate", "peak rate", "BDP", "delivered", "sent again"] as const;

export function flowView(main: HTMLElement, id: string, heard: (attached: Attached) => void): () => void {
	const pasts: Record<Scope, Past> = { beginning: new Past(), recent: new Past(), life: new Past() };
	const happened: Happened[] = [];
	let shadow: Shadow | null = null;
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
		h("button", { type: "button", "aria-pressed": "false", "data-scope": scope, hidden: scope === "recent" && recording() !== "", click: () => choose(scope) }, label),
	);
	const charts = new FlowCharts();
	const bars = new Bars();
	const others = h("section", { class: "card others" });
	const evidence = h("section", { class: "card evidence" });
	const parameters = h("section", { class: "card" });
	fill(
		main,
		h("p", { class: "back" }, h("a", { href: address("flows") }, "← All flows")),
		title,
		chips,
		story,
		h("dl", { class: "tiles" }, ...tiles.map((tile) => tile.element)),
		h("div", { class: "scopes", role: "group", "aria-label": "Time shown" }, ...buttons),
		h("div", { class: "charts" }, ...charts.elements, evidence),
		h("div", { class: "charts" }, others, parameters),
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
		text(title, flow.local_port || flow.remote_port ? `${format.end(flow.local_address, flow.local_port)} → ${format.end(flow.remote_address, flow.remote_port)}` : `Flow ${id}`);
		fill(
			chips,
			h("span", { class: "chip algorithm" }, flow.algorithm),
			h("span", { class: `chip ${flow.state}` }, flow.idle ? "idle" : format.words(flow.state)),
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
			format.rate(flow.rate_max_bps),
			format.product(flow.bdp_bytes, flow.bdp_at_least),
			format.bytes(flow.acknowledged_bytes),
			format.bytes(flow.retransmitted_bytes),
		];
		tiles.forEach((tile, number) => text(tile.value, values[number] ?? ""));
		const now = scope();
		for (const button of buttons) {
			button.setAttribute("aria-pressed", String(button.dataset["scope"] === now));
			if (button.dataset["scope"] === "recent") button.disabled = !flow.recent;
		}
		charts.draw(series(flow, pasts[now], happened, shadow));
		othersView(others, flow, shadow);
		showEvidence(flow);
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
					"div",
					{ class: "gauge" },
					`${picture.title} ${gauge.value_pct} %, leaves from ${gauge.threshold_pct} % on; the highest below that was ${gauge.highest_below_pct} %`,
					gaugeBar(gauge.value_pct / most, gauge.threshold_pct / most, gauge.highest_below_pct / most),
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
			h("p", { class: "quiet" }, `Generation ${flow.parameters_generation} of set ${flow.parameter_set}. `, !recording() && h("a", { href: address("algorithms") }, "Tune them")),
			Object.keys(set).length === 0
				? h("p", { class: "quiet" }, "It has none.")
				: h("table", { class: "values" }, h("tbody", {}, ...Object.entries(set).map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, String(value)))))),
		);
	}

	const close = live(new URLSearchParams({ flow: id, limit: "1" }), {
		flow(next) {
			const take = (name: Scope, change: Change | null): void => {
				if (change) pasts[name].take(change);
			};
			take("beginning", next.beginning);
			take("life", next.life);
			take("recent", next.recent);
			happened.splice(next.happened_from, Infinity, ...next.happened);
			shadow = next.shadow ?? shadow;
			detail = next;
			schedule();
		},
		gone() {
			if (!detail) text(story, "This flow is not known: it has ended long ago, or has sent nothing since the server began.");
		},
		attached: heard,
	});
	const unlisten = onTheme(() => {
		charts.forget();
		schedule();
	});
	return () => {
		close();
		unlisten();
		cancelAnimationFrame(scheduled);
		charts.destroy();
	};
}

/** A value, its threshold and the highest below that, as parts of the bar. */
function gaugeBar(value: number, threshold: number, highest: number): HTMLElement {
	const fillIn = h("i", { class: value >= threshold ? "over" : "" });
	fillIn.style.width = `${Math.min(value, 1) * 100}%`;
	const [line, mark] = [h("b"), h("b", { class: "highest" })];
	line.style.left = `${threshold * 100}%`;
	mark.style.left = `${highest * 100}%`;
	return h("span", { class: "bar", "aria-hidden": "true" }, fillIn, mark, line);
}

/** A flow's past as its charts take it. */
function series(flow: Detail, past: Past, happened: Happened[], shadow: Shadow | null): Series {
	const { columns } = past;
	const seconds = (us: number): number => (us - flow.started_us) / 1e6;
	const exit = flow.exit ? { x: flow.exit.since_start_us / 1e6, label: format.words(flow.exit.reason) } : null;
	const { track } = flow.evidence;
	const last = Math.max(...columns.at_us.map((us) => us ?? 0));
	return {
		x: columns.at_us.map((us) => seconds(us ?? 0)),
		sent: columns.sent_bytes,
		acknowledged: columns.acknowledged_bytes,
		held: columns.sent_bytes.map((sent, at) => Math.max(columns.acknowledged_bytes[at] ?? 0, (sent ?? 0) - (columns.in_flight_segments[at] ?? 0) * flow.mss_bytes)),
		windowEnd: columns.window_end_bytes,
		cwnd: columns.cwnd_segments,
		cwndSpan: [columns.cwnd_max_segments, columns.cwnd_min_segments],
		ssthresh: columns.ssthresh_segments,
		inFlight: columns.in_flight_segments,
		inFlightSpan: [columns.in_flight_max_segments, columns.in_flight_min_segments],
		rtt: columns.rtt_us,
		rttMost: columns.rtt_max_us,
		minRtt: flow.min_rtt_us,
		rate: columns.rate_bps,
		pacing: columns.pacing_rate_bps,
		track: track && { title: track.title, unit: track.unit, limitTitle: track.limit_title, values: columns.watched, limit: columns.limit },
		exit,
		slowStart: flow.state === "adopted" ? null : [0, exit?.x ?? Infinity],
		happened: happened.filter((one) => one.at_us <= last).map((one) => ({ x: seconds(one.at_us), what: one.what, acknowledged: one.acknowledged_bytes })),
		others: (shadow?.findings ?? []).flatMap((one) => (one.exit && one.algorithm !== flow.algorithm ? [{ x: one.exit.since_start_us / 1e6, algorithm: one.algorithm, cwnd: one.exit.cwnd_segments }] : [])),
	};
}
