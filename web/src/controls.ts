// Flows of other controls, which the server shows where nothing is attached: those that have acknowledged most.

import { h, text } from "./dom";
import * as format from "./format";
import type { OtherFlow, Others } from "./schema";

const COLUMNS: { title: string; class: string; show(flow: OtherFlow): string }[] = [
	{ title: "Remote", class: "remote", show: (flow) => format.end(flow.remote_address, flow.remote_port) },
	{ title: "Local", class: "local", show: (flow) => format.end(flow.local_address, flow.local_port) },
	{ title: "Control", class: "control", show: (flow) => flow.congestion_control },
	{ title: "Limited by", class: "limited", show: (flow) => (flow.limited ? format.words(flow.limited) : "–") },
	{ title: "cwnd", class: "number cwnd", show: (flow) => format.segments(flow.cwnd_segments) },
	{ title: "RTT", class: "number rtt", show: (flow) => format.time(flow.smoothed_rtt_us) },
	{ title: "Rate", class: "number rate", show: (flow) => rate(flow) },
	{ title: "Delivered", class: "number delivered", show: (flow) => format.bytes(flow.acknowledged_bytes) },
	{ title: "Retransmitted", class: "number resent", show: (flow) => format.count(flow.retransmitted_segments) },
];

/** What a flow sends that has little to send says nothing of its path. */
function rate(flow: OtherFlow): string {
	if (!flow.delivery_rate_bytes_per_s) return "–";
	return `${flow.delivery_rate_app_limited ? "≥ " : ""}${format.rate(flow.delivery_rate_bytes_per_s * 8)}`;
}

export class ControlsTable {
	private readonly body = h("tbody");
	readonly element = h(
		"table",
		{ class: "controls", "aria-label": "Flows of all controls", hidden: true },
		h("thead", {}, h("tr", {}, ...COLUMNS.map((one) => h("th", { scope: "col", class: one.class }, one.title)))),
		this.body,
	);

	/** Rows stay, so that what is selected in them does. */
	draw({ flows }: Others): void {
		while (this.body.rows.length > flows.length) this.body.deleteRow(-1);
		flows.forEach((flow, number) => {
			const row = this.body.rows[number] ?? this.row();
			COLUMNS.forEach((column, at) => {
				const cell = row.cells[at];
				if (cell) text(cell, column.show(flow));
			});
		});
	}

	private row(): HTMLTableRowElement {
		const row = h("tr", {}, ...COLUMNS.map((column) => h("td", { class: column.class })));
		this.body.append(row);
		return row;
	}
}

/** What they are, and how many of how many. */
export function controlsText({ flows, total }: Others): string {
	const some = flows.length < total ? `the ${format.count(flows.length)} of ${format.count(total)}` : "those";
	return (
		`Nothing is attached. These are the flows of all controls in the server's network namespace, ${some} that ` +
		"have delivered most first; onramp explain says what they wait for."
	);
}
