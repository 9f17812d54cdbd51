// What every algorithm would have done with the acknowledgments of a flow, and what that would have cost.

import { fill, h } from "./dom";
import * as format from "./format";
import type { Flow, Opinion, Regret, Shadow } from "./schema";
import { recording } from "./source";

const UNKNOWN = "The bandwidth-delay product is not known: no round of the flow is over. So nothing is said of costs.";

const shown = new WeakMap<HTMLElement, string>();

/** Of reports, which have no continuations, too. */
export type Said = Pick<Shadow, "given"> & { findings: Omit<Opinion, "continuation">[] };

export function othersView(place: HTMLElement, flow: Flow, shadow: Said | null): void {
	const now = JSON.stringify([shadow, flow.exit, flow.regret]);
	if (shown.get(place) === now) return;
	shown.set(place, now);
	const title = h("h2", {}, "What other algorithms would have done");
	if (!shadow) {
		fill(
			place,
			title,
			h(
				"p",
				{ class: "quiet" },
				"Not known: it takes every acknowledgment from the first on. Start the server with --shadow " +
					"search,ramp,… before the flow begins, or record it with onramp record --level ack and drop " +
					"the recording here.",
			),
		);
		return;
	}
	const { given } = shadow;
	const rows = [
		...(flow.exit
			? [
					{
						name: `${flow.algorithm}, really`,
						real: true,
						exit: { since_start_us: flow.exit.since_start_us, window_bytes: flow.exit.window_bytes },
						regret: flow.regret,
						outcome: "",
					},
				]
			: []),
		...shadow.findings.map((one) => ({
			name: named(one, flow.algorithm),
			real: false,
			exit: one.exit,
			regret: one.regret,
			outcome: one.last_outcome,
		})),
	].sort((one, other) => cost(one.regret, one.exit) - cost(other.regret, other.exit));
	const most = Math.max(1, ...rows.map(({ regret }) => Math.max(regret?.early_us ?? 0, regret?.queue_us ?? 0)));
	fill(
		place,
		title,
		h("p", { class: "quiet" }, given ? givenText(given) : UNKNOWN),
		h(
			"div",
			{ class: "wide" },
			h(
				"table",
				{ class: "values opinions" },
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						...["Algorithm", "Leaves after", "Window", "Exit / BDP", "Lost", "", "Queue"].map((name) =>
							h("th", { scope: "col" }, name),
						),
					),
				),
				h(
					"tbody",
					{},
					...rows.map(({ name, real, exit, regret, outcome }) =>
						exit
							? h(
									"tr",
									{ class: real ? "real" : "" },
									h("th", { scope: "row" }, name),
									h("td", {}, format.time(exit.since_start_us)),
									h("td", {}, format.bytes(exit.window_bytes)),
									h("td", {}, given ? overBdp(exit.window_bytes, given) : "–"),
									h("td", {}, regret ? (regret.early_us ? format.time(regret.early_us) : "–") : "?"),
									h("td", { class: "balance", "aria-hidden": "true" }, balance(regret, most)),
									h(
										"td",
										{},
										regret?.queue_us == null
											? "?"
											: regret.queue_us
												? format.time(regret.queue_us)
												: "–",
									),
								)
							: h(
									"tr",
									{},
									h("th", { scope: "row" }, name),
									h(
										"td",
										{ colspan: 6, class: "quiet" },
										`not before the flow itself left (${format.words(outcome)})`,
									),
								),
					),
				),
			),
		),
		h(
			"p",
			{ class: "quiet" },
			"Open loop: exact up to an exit, but an exit would have changed what came after. The cost of " +
				"others is what CUBIC would take from their window on, as the thin lines of the chart of the window " +
				"show it.",
		),
	);
}

/** An algorithm with what was set of its parameters; the flow's own was asked again. Reports have settings. */
function named({ algorithm, settings }: Said["findings"][number] & { settings?: string[] }, own: string): string {
	const name = [algorithm, ...(settings ?? [])].join(" ");
	return algorithm === own ? `${name}, ${settings || recording() ? "replayed" : "with its defaults"}` : name;
}

/** What is better comes first; who never left comes last. */
function cost(regret: Regret | null, exit: unknown): number {
	return exit ? (regret ? regret.early_us + (regret.queue_us ?? 0) : 1e15) : Infinity;
}

/** Lost time to the left, queue to the right. */
function balance(regret: Regret | null, most: number): HTMLElement {
	const bar = (name: string, us: number): HTMLElement => {
		const part = h("i", { class: name });
		part.style.width = `${(50 * us) / most}%`;
		return part;
	};
	return h("span", { class: "scale" }, bar("early", regret?.early_us ?? 0), bar("late", regret?.queue_us ?? 0));
}

type PathEstimate = NonNullable<Shadow["given"]>;

/** A window over the bandwidth-delay product. */
function overBdp(windowBytes: number, given: PathEstimate): string {
	return `${given.at_least ? "≤ " : ""}${format.ratio(windowBytes / given.window_bytes)}`;
}

function givenText(given: PathEstimate): string {
	const rate = format.rate(given.rate_bytes_per_second * 8);
	const product = format.product(given.window_bytes, given.at_least);
	const more = given.at_least
		? "The flow did not keep that rate for four rounds, so the path may give more: nothing is said of queues. "
		: "";
	return (
		`Peak rate ${rate}, minimum RTT ${format.time(given.base_rtt_us)}: a bandwidth-delay product of ${product}. ` +
		`${more}Seconds lost by leaving early are to the left, the queue of a late exit to the right.`
	);
}
