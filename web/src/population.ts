// Flows as a population, as the server counts them: where they exit slow start, by RTT, algorithm and network; and
// which of them it cost most.

import { live } from "./api";
import { Distribution } from "./distribution";
import { fill, h, text } from "./dom";
import * as format from "./format";
import { Heat, within } from "./heat";
import type { Flow, Population, Status } from "./schema";
import { address } from "./source";
import { onTheme } from "./theme";

/** A list of flows that are the most of something. */
interface Worst {
	name: keyof Population["worst"] & string;
	title: string;
	head: string;
	show: (flow: Flow) => string;
}

const WORST: Worst[] = [
	{
		name: "early",
		title: "Lost most time by leaving early",
		head: "lost",
		show: (flow) => format.time(flow.regret?.early_us ?? null),
	},
	{
		name: "late",
		title: "Longest queue by leaving late",
		head: "queue",
		show: (flow) => format.time(flow.regret?.queue_us ?? null),
	},
	{
		name: "retransmitted",
		title: "Sent most again",
		head: "retransmitted",
		show: (flow) => format.bytes(flow.retransmitted_bytes),
	},
];

const NETWORKS =
	"Exit / BDP: the middle half of each network's flows as a bar, 10 to 90 % as a line, the median as a dot.";
const PRODUCT =
	"The bandwidth-delay product is a flow's highest delivery rate of a round times its minimum RTT: what it has " +
	"seen of its path so far. Shaded around a curve is where the true distribution lies, all of it, but for an error " +
	"of 5 %.";

export function populationView(main: HTMLElement, onAttached: (attached: Status) => void): () => void {
	const view = new PopulationView(main, onAttached);
	return () => view.leave();
}

class PopulationView {
	private now: Population | null = null;
	private scheduled = 0;
	private readonly summary = h("p", { class: "summary", role: "status" }, "Waiting for flows …");
	private readonly heat = new Heat(() => this.schedule());
	private readonly distribution = new Distribution(() => this.schedule());
	private readonly networks = h("div", { class: "networks" });
	private readonly bodies = WORST.map((worst) => ({ ...worst, body: h("tbody") }));
	private readonly close: () => void;
	private readonly unlisten = onTheme(() => this.again());
	private readonly observer = new ResizeObserver(() => this.again());

	constructor(main: HTMLElement, onAttached: (attached: Status) => void) {
		fill(
			main,
			h("h1", {}, "Where flows exit slow start"),
			this.summary,
			h("div", { class: "charts" }, this.heatCard(), this.distributionCard()),
			h(
				"section",
				{ class: "card" },
				h("h2", {}, "By network of the remote end"),
				h("p", { class: "quiet" }, NETWORKS),
				this.networks,
			),
			h("div", { class: "charts three" }, ...this.bodies.map((worst) => worstCard(worst, worst.body))),
			h("p", { class: "quiet" }, PRODUCT),
		);
		this.close = live(new URLSearchParams({ limit: "1", population: "true" }), {
			population: (next) => {
				this.now = next;
				this.schedule();
			},
			attached: onAttached,
		});
		this.observer.observe(main);
	}

	leave(): void {
		this.close();
		this.unlisten();
		this.observer.disconnect();
		cancelAnimationFrame(this.scheduled);
		this.distribution.destroy();
	}

	private heatCard(): HTMLElement {
		const scale = h("span", { class: "ramp", "aria-hidden": "true" });
		return h(
			"section",
			{ class: "card chart" },
			h("h2", {}, "Exit / BDP over minimum RTT"),
			h(
				"p",
				{ class: "legend" },
				h("span", { class: "key" }, "1 flow", scale, "most"),
				h("span", { class: "key" }, h("i", { class: "dashed" }), "bandwidth-delay product"),
			),
			this.heat.map,
			this.heat.under,
		);
	}

	private distributionCard(): HTMLElement {
		const { choice, key, curves } = this.distribution;
		const label = h("label", { for: "measure" }, "Share of flows at or below, by");
		return h("section", { class: "card chart" }, h("h2", {}, label, choice), key, curves);
	}

	private again(): void {
		this.distribution.forget();
		this.schedule();
	}

	private schedule(): void {
		if (!this.scheduled) this.scheduled = requestAnimationFrame(() => this.draw());
	}

	private draw(): void {
		this.scheduled = 0;
		if (!this.now) return;
		this.drawSummary(this.now);
		this.heat.draw(this.now);
		this.distribution.draw(this.now);
		this.drawNetworks(this.now);
		for (const { name, body, show } of this.bodies) fill(body, ...rows(this.now.worst[name], show));
	}

	private drawSummary({ distributions, left, flows }: Population): void {
		const exits = distributions.filter((one) => one.measure === "exit_to_bdp");
		const median = format.ratio(exits[0]?.quantiles[50] ?? null);
		const summary = exits.length === 1 ? `; half of them at or below ${median} the bandwidth-delay product` : "";
		const counts = `${format.count(left)} of ${format.count(flows)} flows`;
		text(this.summary, `${counts} have exited slow start and reported a rate${summary}`);
	}

	private drawNetworks({ map, networks }: Population): void {
		fill(this.networks, ...networks.map((one) => networkRow(one, map.exit_to_bdp)));
	}
}

function worstCard({ name, title, head }: Worst, body: HTMLElement): HTMLElement {
	const heads = ["Flow", "Algorithm", "Exit / BDP", head].map((cell) => h("th", { scope: "col" }, cell));
	return h(
		"section",
		{ class: "card", "data-worst": name },
		h("h2", {}, title),
		h("table", { class: "worst" }, h("thead", {}, h("tr", {}, ...heads)), body),
	);
}

function rows(flows: Flow[], show: (flow: Flow) => string): HTMLElement[] {
	if (flows.length === 0) return [h("tr", {}, h("td", { colspan: 4, class: "quiet" }, "none"))];
	return flows.map((flow) => {
		const remote = format.end(flow.remote_address, flow.remote_port);
		return h(
			"tr",
			{},
			h("td", {}, h("a", { href: address(`flow/${flow.flow}`) }, remote)),
			h("td", {}, flow.algorithm),
			h("td", { class: "number" }, format.ratio(format.overBdp(flow))),
			h("td", { class: "number" }, show(flow)),
		);
	});
}

function networkRow(one: Population["networks"][number], bounds: [number, number]): HTMLElement {
	const { network, flows, median_rtt_us: rtt, exit_to_bdp: exits } = one;
	const median = exits[2];
	return h(
		"div",
		{},
		h("a", { href: address("flows", new URLSearchParams({ filter: `dst ${network}` })) }, network),
		h("span", { class: "number" }, `${format.count(flows)} flow${flows === 1 ? "" : "s"}`),
		h("span", { class: "number" }, format.time(rtt)),
		box(exits, bounds),
		h("span", { class: "number" }, median == null ? "–" : format.ratio(median)),
	);
}

/** Quantiles of a network's exits, and where the bandwidth-delay product is. */
function box([p10, p25, p50, p75, p90]: (number | undefined)[], bounds: [number, number]): HTMLElement {
	const track = h("span", { class: "box", "aria-hidden": "true" });
	const piece = (name: string, from: number, to?: number): void => {
		const part = h("i", { class: name });
		part.style.left = `${100 * within(from, bounds)}%`;
		if (to != null) part.style.right = `${100 - 100 * within(to, bounds)}%`;
		track.append(part);
	};
	piece("one", 1);
	if (p10 != null && p25 != null && p50 != null && p75 != null && p90 != null) {
		piece("whisker", p10, p90);
		piece("half", p25, p75);
		piece("median", p50);
	}
	return track;
}
