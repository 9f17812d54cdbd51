// One flow: what it did over time, how it exited slow start, what its algorithm knows, and what others would have done.

import { type Listener, live } from "./api";
import { axisButton, logarithmic } from "./axis";
import type { Moment } from "./chart";
import { Comparison, flowTitle } from "./compare";
import { fill, h, hasModifier, isTyped, say, text } from "./dom";
import { EvidenceCard } from "./evidence";
import * as format from "./format";
import { Known, type Scope } from "./known";
import { othersView } from "./others";
import type { FlowDetail, Status } from "./schema";
import { FlowCharts, type Series } from "./series";
import { type Saved, share } from "./share";
import { address, isSaved, recording } from "./source";
import { color, onTheme } from "./theme";
import { onZoom, shownRange, zoom, zoomBy } from "./zoom";

const SCOPES = [
	["beginning", "Slow start"],
	["recent", "Last 30 s"],
	["life", "Whole life"],
] as const satisfies [Scope, string][];

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
	const hear: Hear = (flow, listener) =>
		live(new URLSearchParams({ flow, limit: "1" }), { ...listener, attached: onAttached });
	const view = new FlowView(main, id, parameters, hear);
	return () => view.leave();
}

/** A flow with which this document was saved. */
export function savedView(main: HTMLElement, { flow, other, moment }: Saved, parameters: URLSearchParams): void {
	if (other) parameters.set("with", String(other.flow));
	if (moment != null && !parameters.has("t")) parameters.set("t", String(moment));
	new FlowView(main, String(flow.flow), parameters, (id, listener) => {
		const known = [flow, other].find((one) => String(one?.flow) === id);
		if (known) queueMicrotask(() => listener.flow?.(known));
		return () => {};
	});
}

/** Listens for what becomes known of a flow, until what is returned is called. */
type Hear = (flow: string, listener: Listener) => () => void;

/** How much closer one step of the zoom comes, and how much further one of the pan. */
const CLOSER = 0.5;
const FURTHER = 0.25;
const STEPS: Record<string, () => void> = {
	"+": () => zoomBy(CLOSER),
	"=": () => zoomBy(CLOSER),
	"-": () => zoomBy(1 / CLOSER),
	ArrowLeft: () => zoomBy(1, -FURTHER),
	ArrowRight: () => zoomBy(1, FURTHER),
	"0": () => zoom(null),
};

class FlowView {
	private readonly known = new Known();
	/** The flow that it is compared with. */
	private other = new Known();
	private otherId: string;
	private leaveOther = (): void => {};
	/** Seconds since the first data that are pointed at. */
	private moment: number | null;
	private chosen: Scope | null = null;
	private saidExit = "";
	private scheduled = 0;

	private readonly title = h("h1", {}, "Flow");
	private readonly chips = h("p", { class: "chips" });
	private readonly story = h("p", { class: "story" }, "Waiting for the flow …");
	private readonly tiles = TILES.map(([name, show]) => ({ name, show, value: h("dd", {}, "–") }));
	private readonly buttons = SCOPES.map(([scope, label]) => this.button(scope, label));
	private readonly charts = new FlowCharts();
	private readonly comparison: Comparison;
	private readonly sharing = h(
		"button",
		{
			type: "button",
			title: "One file with this flow and its charts, which needs no server",
			click: () => this.share(),
		},
		"Save page",
	);
	private readonly all = h("button", { type: "button", hidden: true, click: () => zoom(null) }, "All of it (0)");
	private readonly others = h("section", { class: "card others" });
	private readonly evidence = new EvidenceCard();
	private readonly parameters = h("section", { class: "card" });
	private readonly close: () => void;
	private readonly unlisten: () => void;

	constructor(
		main: HTMLElement,
		private readonly id: string,
		parameters: URLSearchParams,
		private readonly hear: Hear,
	) {
		const moment = Number.parseFloat(parameters.get("t") ?? "");
		this.moment = Number.isFinite(moment) ? moment : null;
		this.otherId = parameters.get("with") ?? "";
		this.comparison = new Comparison(id, this.otherId, (other) => this.compare(other));
		this.sharing.hidden = isSaved();
		const tiles = this.tiles.map(({ name, value }) => h("div", { class: "tile" }, h("dt", {}, name), value));
		fill(
			main,
			!isSaved() && h("p", { class: "back" }, h("a", { href: address("flows") }, "← All flows")),
			this.title,
			this.chips,
			this.story,
			h("dl", { class: "tiles" }, ...tiles),
			h(
				"div",
				{ class: "toolbar" },
				h("div", { class: "scopes", role: "group", "aria-label": "Time shown" }, ...this.buttons),
				axisButton(() => this.schedule()),
				this.comparison.picker,
				this.sharing,
			),
			h(
				"p",
				{ class: "quiet hint" },
				"Drag in a chart to zoom, or press + − ← →; double click for all of it. A click points at a moment, " +
					"which the address then names.",
				this.all,
			),
			this.comparison.element,
			h("div", { class: "charts" }, ...this.charts.elements, this.evidence.element),
			h("div", { class: "charts" }, this.others, this.parameters),
		);
		this.charts.onPick((x) => this.point(x));
		this.comparison.onPick((x) => this.point(x));
		onZoom(() => {
			this.all.hidden = shownRange() == null;
		});
		document.addEventListener("keydown", this.onKey);
		this.close = hear(id, {
			flow: (next) => {
				this.known.take(next);
				this.schedule();
			},
			gone: () => {
				if (!this.known.detail) text(this.story, UNKNOWN);
			},
		});
		this.hearOther();
		this.unlisten = onTheme(() => {
			this.charts.forget();
			this.comparison.forget();
			this.schedule();
		});
	}

	leave(): void {
		this.close();
		this.leaveOther();
		this.unlisten();
		document.removeEventListener("keydown", this.onKey);
		cancelAnimationFrame(this.scheduled);
		this.charts.destroy();
		this.comparison.destroy();
	}

	private readonly onKey = (event: KeyboardEvent): void => {
		const step = STEPS[event.key];
		if (!step || isTyped(event) || hasModifier(event)) return;
		event.preventDefault();
		step();
	};

	/** What is compared and pointed at has an address, which can be given to others. */
	private showAddress(): void {
		const query = new URLSearchParams();
		if (this.otherId) query.set("with", this.otherId);
		if (this.moment != null) query.set("t", String(this.moment));
		history.replaceState(null, "", address(`flow/${this.id}`, query));
	}

	/** Another flow, or with an empty name none. */
	private compare(other: string): void {
		this.otherId = other;
		this.other = new Known();
		this.comparison.choose(other);
		this.showAddress();
		this.hearOther();
	}

	private hearOther(): void {
		this.leaveOther();
		if (!this.otherId) return;
		const { other } = this;
		this.leaveOther = this.hear(this.otherId, {
			flow: (next) => {
				other.take(next);
				this.schedule();
			},
			gone: () => {
				if (!other.detail) this.comparison.gone();
			},
		});
	}

	/** As it is known now, as a file. */
	private async share(): Promise<void> {
		const flow = this.known.whole();
		if (!flow) return;
		const saved = { saved_at: new Date().toISOString(), flow, other: this.other.whole(), moment: this.moment };
		try {
			await share(`onramp ${flowTitle(flow)}`, saved);
		} catch (error) {
			text(this.story, `This page could not be saved: ${(error as Error).message}`);
		}
	}

	private point(x: number): void {
		this.moment = Math.round(x * 1000) / 1000;
		this.showAddress();
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

	private schedule(): void {
		if (!this.scheduled) this.scheduled = requestAnimationFrame(() => this.draw());
	}

	private draw(): void {
		this.scheduled = 0;
		const { known, other } = this;
		if (!known.detail) return;
		const flow = known.detail;
		this.drawHead(flow);
		for (const { show, value } of this.tiles) text(value, show(flow));
		const scope = this.chosen && (this.chosen !== "recent" || flow.recent) ? this.chosen : known.scope();
		this.drawButtons(flow, scope);
		const moment: Moment | null =
			this.moment == null
				? null
				: { x: this.moment, label: `${this.moment.toFixed(2)} s`, color: color("quiet") };
		this.charts.draw({ ...series(flow, known, scope), moment });
		// The newest seconds of both have no start in common.
		this.comparison.draw(known, other, scope === "recent" ? "life" : scope, moment);
		othersView(this.others, flow, known.shadow);
		this.evidence.draw(flow);
		this.drawParameters(flow);
	}

	private drawHead(flow: FlowDetail): void {
		text(this.title, flowTitle(flow));
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
		const link = !recording() && !isSaved() && h("a", { href: address("algorithms") }, "Tune them");
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
function series(flow: FlowDetail, known: Known, scope: Scope): Omit<Series, "moment"> {
	const { columns } = known.pasts[scope];
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
		incidents: known.incidents
			.filter((one) => one.at_us <= last)
			.map((one) => ({ x: seconds(one.at_us), what: one.what, acknowledged: one.acknowledged_bytes })),
		others: (known.shadow?.findings ?? []).flatMap(({ exit, algorithm, continuation }) =>
			exit && algorithm !== flow.algorithm
				? [
						{
							x: exit.since_start_us / 1e6,
							algorithm,
							cwnd: exit.cwnd_segments,
							continuation: continuation.map(([us, bytes]): [number, number] => [
								us / 1e6,
								(bytes * exit.cwnd_segments) / exit.window_bytes,
							]),
						},
					]
				: [],
		),
	};
}
