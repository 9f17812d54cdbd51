// One flow: what it did over time, how it exited slow start, what its algorithm knows, and what others would have done.

import { live } from "./api";
import { axisButton, logarithmic } from "./axis";
import { fill, h, say, text } from "./dom";
import { EvidenceCard } from "./evidence";
import * as format from "./format";
import { othersView } from "./others";
import { Past } from "./past";
import type { Past as Change, FlowDetail, Incident, Shadow, Status } from "./schema";
import { FlowCharts, type Series } from "./series";
import { address, recording } from "./source";
import { onTheme } from "./theme";

const SCOPES = [
	["beginning", "Slow start"],
	["recent", "Last 30 s"],
	["life", "Whole life"],
] as const;
type Scope = (typeof SCOPES)[number][0];

/** What is shown of a flow as it is now. */
const TILES: [string, (flow: FlowDetail) => string][] = [
	["cwnd", (flow) => format.segments(flow.cwnd_segments)],
	["ssthresh", (flow) => format.segments(flow.ssthresh_segments)],
	["in flight", (flow) => format.segments(flow.in_flight_segments)],
	["RTT", (flow) => format.time(flow.rtt_us)],
	["min RTT", (flow) => format.time(flow.min_rtt_us)],
	["rate", (flow) => format.rate(flow.rate_bps)],
	["peak rate", (flow) => format.rate(flow.rate_max_bps)],
	["BDP", (flow) => format.product(flow.bdp_bytes, flow.bdp_at_least)],
	["delivered", (flow) => format.bytes(flow.acknowledged_bytes)],
	["retransmitted", (flow) => format.bytes(flow.retransmitted_bytes)],
];
const UNKNOWN = "This flow is not known: it has ended long ago, or has sent nothing since the server began.";

export function flowView(
	main: HTMLElement,
	id: string,
	parameters: URLSearchParams,
	onAttached: (attached: Status) => void,
): () => void {
	const view = new FlowView(main, id, Number.parseFloat(parameters.get("t") ?? ""), onAttached);
	return () => view.leave();
}

class FlowView {
	private readonly pasts: Record<Scope, Past> = { beginning: new Past(), recent: new Past(), life: new Past() };
	private readonly incidents: Incident[] = [];
	private shadow: Shadow | null = null;
	private chosen: Scope | null = null;
	private detail: FlowDetail | null = null;
	private saidExit = "";
	private scheduled = 0;

	private readonly title = h("h1", {}, "Flow");
	private readonly chips = h("p", { class: "chips" });
	private readonly story = h("p", { class: "story" }, "Waiting for the flow …");
	private readonly tiles = TILES.map(([name, show]) => ({ name, show, value: h("dd", {}, "–") }));
	private readonly buttons = SCOPES.map(([scope, label]) => this.button(scope, label));
	private readonly charts = new FlowCharts();
	private readonly others = h("section", { class: "card others" });
	private readonly evidence = new EvidenceCard();
	private readonly parameters = h("section", { class: "card" });
	private readonly close: () => void;
	private readonly unlisten: () => void;

	constructor(
		main: HTMLElement,
		private readonly id: string,
		/** Seconds since the first data that are pointed at; not a number: none. */
		private moment: number,
		onAttached: (attached: Status) => void,
	) {
		const tiles = this.tiles.map(({ name, value }) => h("div", { class: "tile" }, h("dt", {}, name), value));
		fill(
			main,
			h("p", { class: "back" }, h("a", { href: address("flows") }, "← All flows")),
			this.title,
			this.chips,
			this.story,
			h("dl", { class: "tiles" }, ...tiles),
			h("div", { class: "scopes", role: "group", "aria-label": "Time shown" }, ...this.buttons),
			axisButton(() => this.schedule()),
			h("div", { class: "charts" }, ...this.charts.elements, this.evidence.element),
			h("div", { class: "charts" }, this.others, this.parameters),
		);
		this.charts.onPick((x) => this.point(x));
		this.close = live(new URLSearchParams({ flow: id, limit: "1" }), {
			flow: (next) => this.take(next),
			gone: () => {
				if (!this.detail) text(this.story, UNKNOWN);
			},
			attached: onAttached,
		});
		this.unlisten = onTheme(() => {
			this.charts.forget();
			this.schedule();
		});
	}

	leave(): void {
		this.close();
		this.unlisten();
		cancelAnimationFrame(this.scheduled);
		this.charts.destroy();
	}

	/** Points at a moment; its address can be given to others. */
	private point(x: number): void {
		this.moment = Math.round(x * 1000) / 1000;
		const query = new URLSearchParams({ t: String(this.moment) });
		history.replaceState(null, "", address(`flow/${this.id}`, query));
		say(`This moment has an address now: ${this.moment} s`);
		this.schedule();
	}

	private button(scope: Scope, label: string): HTMLButtonElement {
		const click = (): void => {
			this.chosen = scope;
			this.schedule();
		};
		const hidden = scope === "recent" && recording() !== "";
		return h("button", { type: "button", "aria-pressed": "false", "data-scope": scope, hidden, click }, label);
	}

	private take(next: FlowDetail): void {
		const take = (name: Scope, change: Change | null): void => {
			if (change) this.pasts[name].take(change);
		};
		take("beginning", next.beginning);
		take("life", next.life);
		take("recent", next.recent);
		this.incidents.splice(next.incidents_from, Infinity, ...next.incidents);
		this.shadow = next.shadow ?? this.shadow;
		this.detail = next;
		this.schedule();
	}

	/** What is worth seeing first: the slow start where it was seen, else all there is. */
	private scope(flow: FlowDetail): Scope {
		if (this.chosen && (this.chosen !== "recent" || flow.recent)) return this.chosen;
		const { exit } = flow;
		const first = this.pasts.beginning.columns.at_us[0];
		const seen = first != null && (!exit || first <= flow.started_us + exit.since_start_us);
		return seen && flow.state !== "adopted" ? "beginning" : "life";
	}

	private schedule(): void {
		if (!this.scheduled) this.scheduled = requestAnimationFrame(() => this.draw());
	}

	private draw(): void {
		this.scheduled = 0;
		if (!this.detail) return;
		const flow = this.detail;
		this.drawHead(flow);
		for (const { show, value } of this.tiles) text(value, show(flow));
		const scope = this.scope(flow);
		this.drawButtons(flow, scope);
		const moment = Number.isFinite(this.moment) ? this.moment : null;
		this.charts.draw({ ...series(flow, this.pasts[scope], this.incidents, this.shadow), moment });
		othersView(this.others, flow, this.shadow);
		this.evidence.draw(flow);
		this.drawParameters(flow);
	}

	private drawHead(flow: FlowDetail): void {
		const local = format.end(flow.local_address, flow.local_port);
		const remote = format.end(flow.remote_address, flow.remote_port);
		text(this.title, flow.local_port || flow.remote_port ? `${local} → ${remote}` : `Flow ${this.id}`);
		const { exit } = flow;
		fill(
			this.chips,
			h("span", { class: "chip algorithm" }, flow.algorithm),
			h("span", { class: `chip ${flow.state}` }, flow.idle ? "idle" : format.words(flow.state)),
			exit && h("span", { class: `chip reason ${exit.reason}` }, `exit: ${format.words(exit.reason)}`),
			flow.limited != null && h("span", { class: "chip" }, `limited by ${format.words(flow.limited)}`),
			flow.rounds_only != null && h("span", { class: "chip" }, `by rounds only: ${flow.rounds_only}`),
		);
		const said = format.exitInWords(flow);
		text(this.story, said);
		if (said !== this.saidExit && this.saidExit) say(said);
		this.saidExit = said;
	}

	private drawButtons(flow: FlowDetail, scope: Scope): void {
		for (const button of this.buttons) {
			button.setAttribute("aria-pressed", String(button.dataset.scope === scope));
			if (button.dataset.scope === "recent") button.disabled = !flow.recent;
		}
	}

	private drawParameters(flow: FlowDetail): void {
		const set = Object.entries(flow.evidence.parameters);
		const rows = set.map(([name, value]) =>
			h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, String(value))),
		);
		const generation = `Generation ${flow.parameters_generation} of set ${flow.parameter_set}. `;
		const link = !recording() && h("a", { href: address("algorithms") }, "Tune them");
		fill(
			this.parameters,
			h("h2", {}, "Parameters of this flow"),
			h("p", { class: "quiet" }, generation, link),
			rows.length === 0
				? h("p", { class: "quiet" }, "It has none.")
				: h("table", { class: "values" }, h("tbody", {}, ...rows)),
		);
	}
}

/** A flow's past as its charts take it. */
function series(flow: FlowDetail, past: Past, incidents: Incident[], shadow: Shadow | null): Omit<Series, "moment"> {
	const { columns } = past;
	const seconds = (us: number): number => (us - flow.started_us) / 1e6;
	const exit = flow.exit ? { x: flow.exit.since_start_us / 1e6, label: format.words(flow.exit.reason) } : null;
	const { track } = flow.evidence;
	const last = Math.max(...columns.at_us.map((us) => us ?? 0));
	return {
		x: columns.at_us.map((us) => seconds(us ?? 0)),
		sent: columns.sent_bytes,
		acknowledged: columns.acknowledged_bytes,
		held: columns.sent_bytes.map((sent, at) => {
			const inFlight = (columns.in_flight_segments[at] ?? 0) * flow.mss_bytes;
			return Math.max(columns.acknowledged_bytes[at] ?? 0, (sent ?? 0) - inFlight);
		}),
		windowEnd: columns.window_end_bytes,
		cwnd: columns.cwnd_segments,
		cwndSpan: [columns.cwnd_max_segments, columns.cwnd_min_segments],
		ssthresh: columns.ssthresh_segments,
		inFlight: columns.in_flight_segments,
		inFlightSpan: [columns.in_flight_max_segments, columns.in_flight_min_segments],
		rtt: columns.rtt_us,
		rttMost: columns.rtt_max_us,
		minRtt: flow.min_rtt_us,
		mss: flow.mss_bytes,
		bdp:
			flow.bdp_bytes && flow.mss_bytes
				? { segments: flow.bdp_bytes / flow.mss_bytes, atLeast: flow.bdp_at_least }
				: null,
		logarithmic: logarithmic(),
		rate: columns.rate_bps,
		pacing: columns.pacing_rate_bps,
		track: track && {
			title: track.title,
			unit: track.unit,
			limitTitle: track.limit_title,
			values: columns.watched,
			limit: columns.limit,
		},
		exit,
		slowStart: flow.state === "adopted" ? null : [0, exit?.x ?? Infinity],
		incidents: incidents
			.filter((one) => one.at_us <= last)
			.map((one) => ({ x: seconds(one.at_us), what: one.what, acknowledged: one.acknowledged_bytes })),
		others: (shadow?.findings ?? []).flatMap(({ exit, algorithm }) =>
			exit && algorithm !== flow.algorithm
				? [{ x: exit.since_start_us / 1e6, algorithm, cwnd: exit.cwnd_segments }]
				: [],
		),
	};
}
