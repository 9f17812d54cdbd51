// What a flow's algorithm keeps of it: its gauge, its bars and all values.

import { Bars } from "./bars";
import { fill, h } from "./dom";
import * as format from "./format";
import type { Evidence, FlowDetail } from "./schema";

type Gauge = NonNullable<NonNullable<Evidence["picture"]>["gauge"]>;

export class EvidenceCard {
	readonly element = h("section", { class: "card evidence" });
	private readonly bars = new Bars();
	/** Whether the values are open, once the user has opened or closed them. */
	private open: boolean | null = null;

	draw({ algorithm, evidence }: FlowDetail): void {
		const { picture } = evidence;
		const gauge = picture?.gauge;
		this.bars.draw(picture?.bars ?? [], picture?.bars_unit ?? "");
		fill(
			this.element,
			h("h2", {}, `What ${algorithm} knows`),
			gauge && gaugeRow(picture.title, gauge),
			picture && h("p", { class: "quiet" }, ...(gauge ? [] : [`${picture.title}: `]), picture.lines.join("; ")),
			picture && picture.bars.length > 0 && this.bars.element,
			this.values(evidence),
		);
	}

	private values({ exports, units, picture }: Evidence): HTMLElement {
		const rows = Object.entries(exports).map(([name, value]) => valueRow(name, value, units[name] ?? ""));
		if (rows.length === 0) return h("p", { class: "quiet" }, "It keeps nothing that is worth showing.");
		const table = h("table", { class: "values" }, h("tbody", {}, ...rows));
		const details = h(
			"details",
			{ open: this.open ?? !picture },
			h("summary", {}, `All ${rows.length} values`),
			table,
		);
		details.addEventListener("toggle", () => {
			this.open = details.open;
		});
		return details;
	}
}

function valueRow(name: string, value: number | number[], unit: string): HTMLElement {
	const shown = Array.isArray(value)
		? `${value.length} values, most ${format.count(Math.max(0, ...value))}`
		: format.count(value);
	return h(
		"tr",
		{},
		h("th", { scope: "row" }, format.words(name)),
		h("td", {}, shown),
		h("td", { class: "unit" }, unit),
	);
}

function gaugeRow(title: string, gauge: Gauge): HTMLElement {
	const { value_pct: value, threshold_pct: threshold, highest_below_pct: highest } = gauge;
	const most = Math.max(100, threshold * 2);
	const said = `${title} ${value} %, leaves from ${threshold} % on; the highest below that was ${highest} %`;
	return h("div", { class: "gauge" }, said, gaugeBar(value / most, threshold / most, highest / most));
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
