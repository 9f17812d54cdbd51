// Two flows on one axis of time, each from its own start.

import { get } from "./api";
import { logarithmic } from "./axis";
import { Chart, type Curve, type Moment } from "./chart";
import { Charts } from "./charts";
import { fill, h, text } from "./dom";
import * as format from "./format";
import type { Known, Scope } from "./known";
import type { Flow, FlowDetail, Flows } from "./schema";
import { isSaved, recording } from "./source";
import { color } from "./theme";

/** Flows that can be chosen from. */
const CHOICES = 200;

/** What is said of each. */
const FIGURES: [string, (flow: FlowDetail) => string][] = [
	["algorithm", (flow) => flow.algorithm],
	["exit", (flow) => (flow.exit ? format.words(flow.exit.reason) : format.words(flow.state))],
	["exit after", (flow) => format.time(flow.exit?.since_start_us ?? null)],
	["exit window", (flow) => (flow.exit ? format.bytes(flow.exit.window_bytes) : "–")],
	["exit / BDP", (flow) => format.exitOverBdp(flow)],
	["lost by it", (flow) => format.lost(flow)],
	["min RTT", (flow) => format.time(flow.min_rtt_us)],
	["peak rate", (flow) => format.rate(flow.rate_max_bps)],
	["delivered", (flow) => format.bytes(flow.acknowledged_bytes)],
	["retransmitted", (flow) => format.bytes(flow.retransmitted_bytes)],
];

export const flowTitle = (flow: Flow): string =>
	flow.local_port || flow.remote_port
		? `${format.end(flow.local_address, flow.local_port)} → ${format.end(flow.remote_address, flow.remote_port)}`
		: `Flow ${flow.flow}`;

export class Comparison extends Charts<"acknowledged" | "window"> {
	/** Chooses the other flow. */
	readonly picker: HTMLElement;
	/** What is shown once it is chosen. */
	readonly element: HTMLElement;
	private readonly select: HTMLSelectElement;
	private readonly table = h("table", { class: "values" });
	private readonly wrong = h("span", { class: "wrong", role: "status" });
	/** What the table says, as far as it is drawn. */
	private said = "";

	constructor(
		private readonly id: string,
		private other: string,
		choose: (other: string) => void,
	) {
		super({
			acknowledged: new Chart("Delivered by both", "bytes acknowledged by two flows, each since its first data"),
			window: new Chart("Windows of both", "congestion windows of two flows, each since its first data"),
		});
		this.select = h("select", { id: "with", change: () => choose(this.select.value) });
		this.picker = h(
			"span",
			{ class: "picker" },
			h("label", { for: "with" }, "Compare with"),
			this.select,
			this.wrong,
		);
		this.picker.hidden = isSaved();
		const figures = h("section", { class: "card wide" }, h("h2", {}, "Side by side"), this.table);
		this.element = h("div", { class: "charts compared", hidden: true }, ...this.elements, figures);
		this.fillSelect([]);
		if (!isSaved()) void this.offer();
	}

	/** Another flow, or with an empty name none. */
	choose(other: string): void {
		this.other = other;
		this.select.value = other;
		this.element.hidden = true;
		text(this.wrong, "");
	}

	/** There is no such flow. */
	gone(): void {
		text(this.wrong, "It is not known any more.");
	}

	/** Those that have delivered most. */
	private async offer(): Promise<void> {
		const query = new URLSearchParams({ sort: "delivered", limit: String(CHOICES) });
		if (recording()) query.set("recording", recording());
		this.fillSelect(
			await get<Flows>(`/api/flows?${query}`).then(
				({ flows }) => flows,
				() => [],
			),
		);
	}

	private fillSelect(flows: Flow[]): void {
		const offered = flows.filter((flow) => String(flow.flow) !== this.id);
		const options = offered.map((flow) => {
			const name = `${flowTitle(flow)}, ${flow.algorithm}, ${format.bytes(flow.acknowledged_bytes)}`;
			return h("option", { value: flow.flow }, name);
		});
		const named = this.other === "" || offered.some((flow) => String(flow.flow) === this.other);
		fill(
			this.select,
			h("option", { value: "" }, offered.length > 0 || !named ? "no other flow" : "there is no other flow"),
			!named && h("option", { value: this.other }, `flow ${this.other}`),
			...options,
		);
		this.select.value = this.other;
	}

	draw(one: Known, other: Known, scope: Scope, moment: Moment | null): void {
		if (!one.detail || !other.detail) return;
		const both = [
			new Staircase(one, one.detail, scope, color("c0"), [], "this"),
			new Staircase(other, other.detail, scope, color("c1"), [7, 4], "other"),
		];
		const x = [...new Set(both.flatMap((stairs) => stairs.x))].sort((one, other) => one - other);
		const moments = [...both.flatMap((stairs) => stairs.exit()), ...(moment ? [moment] : [])];
		const common = { x, moments, slowStart: null };
		this.element.hidden = false;
		this.charts.acknowledged.draw({
			...common,
			curves: both.map((stairs) => stairs.curve(x, stairs.acknowledged)),
			show: format.bytes,
		});
		this.charts.window.draw({
			...common,
			curves: both.map((stairs) => stairs.curve(x, stairs.window)),
			show: format.bytes,
			logarithmic: logarithmic(),
		});
		this.drawTable(one.detail, other.detail);
	}

	private drawTable(one: FlowDetail, other: FlowDetail): void {
		const figures = FIGURES.map(([figure, show]) => [figure, show(one), show(other)]);
		const said = JSON.stringify([one.flow, other.flow, figures]);
		if (said === this.said) return;
		this.said = said;
		const name = (flow: FlowDetail, paint: string, label: string): HTMLElement =>
			h("th", { scope: "col", class: paint }, h("strong", {}, label), ` ${flowTitle(flow)}`);
		const rows = figures.map(([figure, ...values]) =>
			h("tr", {}, h("th", { scope: "row" }, figure ?? ""), ...values.map((value) => h("td", {}, value))),
		);
		fill(
			this.table,
			h("thead", {}, h("tr", {}, h("td"), name(one, "one", "this"), name(other, "two", "other"))),
			h("tbody", {}, ...rows),
		);
	}
}

/** What one of them did, in seconds since its first data and in bytes. */
class Staircase {
	readonly x: number[];
	readonly acknowledged: (number | null)[];
	readonly window: (number | null)[];

	constructor(
		known: Known,
		private readonly flow: FlowDetail,
		scope: Scope,
		private readonly paint: string,
		private readonly dash: number[],
		private readonly label: string,
	) {
		const { columns } = known.pasts[scope];
		this.x = columns.at_us.map((us) => ((us ?? 0) - flow.started_us) / 1e6);
		this.acknowledged = columns.acknowledged_bytes;
		this.window = columns.cwnd_segments.map((segments) => segments && segments * flow.mss_bytes);
	}

	/** At the times of both: between its own ones there is nothing to be known. */
	curve(x: number[], values: (number | null)[]): Curve {
		const at = new Map(this.x.map((time, number) => [time, values[number] ?? null]));
		const { label, paint, dash } = this;
		return { label, color: paint, dash, values: x.map((time) => at.get(time) ?? null) };
	}

	exit(): Moment[] {
		const { exit } = this.flow;
		if (!exit) return [];
		return [
			{ x: exit.since_start_us / 1e6, label: `${this.label}: ${format.words(exit.reason)}`, color: this.paint },
		];
	}
}
