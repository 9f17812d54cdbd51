// A guarded algorithm against its control: what `onramp status --guard` says, with the intervals drawn.

import { h } from "./dom";
import * as format from "./format";
import type { Comparison, Guard } from "./schema";

/** What is compared, with the unit of its difference. */
const METRICS: Record<string, [string, string]> = {
	retransmit_ratio: ["Bytes retransmitted", "points"],
	goodput: ["Goodput", "%"],
	first_64kb: ["Time to the first 64 kB", "%"],
};

export function armsView(guard: Guard): HTMLElement {
	return h(
		"section",
		{ class: "arms" },
		h(
			"h3",
			{},
			"Compared with its control",
			h("span", { class: "chip" }, `${guard.control_share_pct} % of flows stay on the base`),
			guard.tripped ? h("span", { class: "chip bad" }, "tripped: the base runs alone") : null,
		),
		h(
			"table",
			{ class: "values" },
			h(
				"thead",
				{},
				h(
					"tr",
					{},
					...["Arm", "Flows", "Bytes retransmitted", "Goodput", "First 64 kB"].map((name) =>
						h("th", { scope: "col" }, name),
					),
				),
			),
			h(
				"tbody",
				{},
				...(["treated", "control"] as const).map((name) => {
					const {
						flows,
						retransmit_ratio_pct: again,
						goodput_bps: goodput,
						first_64kb_us: first,
					} = guard[name];
					return h(
						"tr",
						{},
						h("th", { scope: "row" }, name),
						...[
							format.count(flows),
							again == null ? "–" : `${again.toFixed(2)} %`,
							format.rate(goodput),
							format.time(first),
						].map((value) => h("td", {}, value)),
					);
				}),
			),
		),
		...guard.comparisons.map(comparisonView),
		h(
			"p",
			{ class: "quiet" },
			"The bar is the interval that holds the true difference at every moment at once, but for an error " +
				"of 5 %; the mark is the margin of the guard.",
		),
	);
}

function comparisonView(one: Comparison): HTMLElement {
	const [name, unit] = METRICS[one.metric] ?? [format.words(one.metric), ""];
	const signed = (value: number): string => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
	const interval = one.interval_pct;
	const summary =
		one.difference_pct != null && interval
			? `${signed(one.difference_pct)} ${unit} (${signed(interval[0])} to ${signed(interval[1])}): ${one.verdict}`
			: one.verdict;
	return h(
		"div",
		{ class: "comparison" },
		h("span", {}, name),
		interval && drawn(one, interval),
		h("span", {}, summary),
	);
}

/** A scale with 0 in its middle. */
function drawn(
	{ difference_pct: difference, margin_pct: margin }: Comparison,
	[low, high]: [number, number],
): HTMLElement {
	const most = 1.1 * Math.max(Math.abs(low), Math.abs(high), Math.abs(margin ?? 0), 1e-9);
	const at = (value: number): string => `${50 + (50 * value) / most}%`;
	const part = (name: string, left: number, right?: number): HTMLElement => {
		const element = h("i", { class: name });
		element.style.left = at(left);
		if (right != null) element.style.width = `${(50 * (right - left)) / most}%`;
		return element;
	};
	return h(
		"span",
		{ class: "interval", "aria-hidden": "true" },
		part("zero", 0),
		margin == null ? null : part("margin", margin),
		part("span", low, high),
		difference == null ? null : part("point", difference),
	);
}
