// Flows as a population, as the server counts them: where they leave slow start, by RTT, algorithm and network; and which
// of them it cost most.

import uPlot from "uplot";
import { type Attached, type Flow, live, type Population } from "./api";
import { fill, h, say, text } from "./dom";
import * as format from "./format";
import { address } from "./source";
import { color, curve, onTheme } from "./theme";

/** What a distribution may be of, on which axis. */
const MEASURES: Record<string, { title: string; show: (value: number) => string; log: boolean }> = {
	exit_to_bdp: { title: "exit / BDP", show: format.ratio, log: true },
	early_seconds: { title: "seconds lost by leaving early", show: (value) => `${+value.toFixed(2)} s`, log: false },
	queue_seconds: { title: "queue left by leaving late", show: (value) => format.time(Math.round(value * 1e6)), log: false },
	sent_again_ratio: { title: "part of bytes sent again", show: (value) => `${+(value * 100).toFixed(2)} %`, log: false },
};

const WORST = [
	["early", "Lost most time by leaving early", "lost", (flow: Flow) => format.time(flow.regret?.early_us ?? null)],
	["late", "Longest queue by leaving late", "queue", (flow: Flow) => format.time(flow.regret?.queue_us ?? null)],
	["sent_again", "Sent most again", "sent again", (flow: Flow) => format.bytes(flow.retransmitted_bytes)],
] as const;

const within = (value: number, [least, most]: [number, number]): number => Math.log(Math.min(Math.max(value, least), most) / least) / Math.log(most / least);
/** A power of two. */
const power = (value: number): string => (value >= 1 ? `${value}×` : `1/${Math.round(1 / value)}×`);
const EDGE = { left: 52, bottom: 30, top: 8, right: 8 };
const HEIGHT = 280;

export function populationView(main: HTMLElement, heard: (attached: Attached) => void): () => void {
	let now: Population | null = null;
	let measure = "exit_to_bdp";
	let scheduled = 0;
	const summary = h("p", { class: "summary", role: "status" }, "Waiting for flows …");
	const map = h("canvas", { class: "heat", role: "img", tabindex: "0", "aria-label": "Exits by minimum RTT: waiting for flows" });
	const scale = h("span", { class: "ramp", "aria-hidden": "true" });
	const under = h("p", { class: "quiet", "aria-live": "off" }, "Point at a cell to see its flows.");
	const curves = h("div", { class: "plot", role: "img", "aria-label": "Cumulative distribution: waiting for flows" });
	const key = h("p", { class: "legend" });
	const choice = h(
		"select",
		{ id: "measure", change: () => choose(choice.value) },
		...Object.entries(MEASURES).map(([name, { title }]) => h("option", { value: name }, title)),
	);
	const networks = h("div", { class: "networks" });
	const bodies = WORST.map(([name]) => [name, h("tbody")] as const);
	fill(
		main,
		h("h1", {}, "Where flows leave slow start"),
		summary,
		h(
			"div",
			{ class: "charts" },
			h(
				"section",
				{ class: "card chart" },
				h("h2", {}, "Exit / BDP over minimum RTT"),
				h("p", { class: "legend" }, h("span", { class: "key" }, "1 flow", scale, "most"), h("span", { class: "key" }, h("i", { class: "dashed" }), "bandwidth-delay product")),
				map,
				under,
			),
			h("section", { class: "card chart" }, h("h2", {}, h("label", { for: "measure" }, "Share of flows at or below, by"), choice), key, curves),
		),
		h(
			"section",
			{ class: "card" },
			h("h2", {}, "By network of the remote end"),
			h("p", { class: "quiet" }, "Exit / BDP: the middle half of each network's flows as a bar, 10 to 90 % as a line, the median as a dot."),
			networks,
		),
		h(
			"div",
			{ class: "charts three" },
			...WORST.map(([name, title, head], number) =>
				h(
					"section",
					{ class: "card", "data-worst": name },
					h("h2", {}, title),
					h("table", { class: "worst" }, h("thead", {}, h("tr", {}, ...["Flow", "Algorithm", "Exit / BDP", head].map((cell) => h("th", { scope: "col" }, cell)))), bodies[number]?.[1]),
				),
			),
		),
		h("p", { class: "quiet" }, "The bandwidth-delay product is a flow's highest delivery rate of a round times its minimum RTT: what it has seen of its path so far. Shaded around a curve is where the true distribution lies, all of it, but for an error of 5 %."),
	);

	function choose(next: string): void {
		measure = next;
		shape = "";
		schedule();
	}

	function schedule(): void {
		if (!scheduled) scheduled = requestAnimationFrame(draw);
	}

	function draw(): void {
		scheduled = 0;
		if (!now) return;
		const median = now.distributions.filter((one) => one.measure === "exit_to_bdp");
		const told = median.length === 1 ? `; half of them at or below ${format.ratio(median[0]?.quantiles[50] ?? null)} the bandwidth-delay product` : "";
		text(summary, `${format.count(now.left)} of ${format.count(now.flows)} flows have left slow start and told a rate${told}`);
		heat(now);
		distribution(now);
		networkRows(now);
		for (const [name, body] of bodies) fill(body, ...rows(now.worst[name], WORST.find(([one]) => one === name)?.[3] ?? (() => "")));
	}

	function rows(flows: Flow[], show: (flow: Flow) => string): HTMLElement[] {
		if (flows.length === 0) return [h("tr", {}, h("td", { colspan: 4, class: "quiet" }, "none"))];
		return flows.map((flow) =>
			h(
				"tr",
				{},
				h("td", {}, h("a", { href: address(`flow/${flow.flow}`) }, format.end(flow.remote_address, flow.remote_port))),
				h("td", {}, flow.algorithm),
				h("td", { class: "number" }, format.ratio(format.overBdp(flow))),
				h("td", { class: "number" }, show(flow)),
			),
		);
	}

	const cells = new Map<number, number>();
	let cursor: [number, number] | null = null;
	function heat(population: Population): void {
		const { map: grid } = population;
		const [columns, lines] = grid.cells;
		const width = Math.max(map.parentElement?.clientWidth ?? 320, 200) - 32;
		const ratio = devicePixelRatio;
		map.width = width * ratio;
		map.height = HEIGHT * ratio;
		map.style.width = `${width}px`;
		map.style.height = `${HEIGHT}px`;
		cells.clear();
		for (const [column, line, flows] of grid.flows) cells.set(line * columns + column, flows);
		const context = map.getContext("2d");
		if (!context) return;
		context.scale(ratio, ratio);
		context.clearRect(0, 0, width, HEIGHT);
		const inner = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
		const px = (part: number): number => EDGE.left + part * inner.width;
		const py = (part: number): number => EDGE.top + (1 - part) * inner.height;
		context.font = "11px system-ui, sans-serif";
		context.fillStyle = color("quiet");
		context.strokeStyle = color("grid");
		const line = (from: [number, number], to: [number, number]): void => {
			context.beginPath();
			context.moveTo(...from);
			context.lineTo(...to);
			context.stroke();
		};
		for (const us of [1e3, 1e4, 1e5, 1e6]) {
			const x = px(within(us, grid.rtt_us));
			context.textAlign = "center";
			context.fillText(us < 1e6 ? `${us / 1e3} ms` : "1 s", x, HEIGHT - 10);
			line([x, EDGE.top], [x, EDGE.top + inner.height]);
		}
		for (const share of [1 / 64, 1 / 16, 1 / 4, 1, 4, 16]) {
			const y = py(within(share, grid.exit_to_bdp));
			context.textAlign = "right";
			context.fillText(power(share), EDGE.left - 8, y + 4);
			line([EDGE.left, y], [EDGE.left + inner.width, y]);
		}
		const most = Math.max(1, ...cells.values());
		context.fillStyle = color("c0");
		for (const [at, flows] of cells) {
			const [x, y] = [at % columns, Math.floor(at / columns)];
			context.globalAlpha = 0.25 + 0.75 * (most > 1 ? Math.log(flows) / Math.log(most) : 1);
			context.fillRect(px(x / columns), py((y + 1) / lines), inner.width / columns - 1, inner.height / lines - 1);
		}
		context.globalAlpha = 1;
		context.strokeStyle = color("exit");
		context.lineWidth = 1.5;
		context.setLineDash([5, 4]);
		const one = py(within(1, grid.exit_to_bdp));
		line([EDGE.left, one], [EDGE.left + inner.width, one]);
		context.setLineDash([]);
		if (cursor) {
			context.strokeStyle = color("ink");
			context.strokeRect(px(cursor[0] / columns) - 1, py((cursor[1] + 1) / lines) - 1, inner.width / columns + 1, inner.height / lines + 1);
		}
		const under = [...cells].filter(([at]) => Math.floor(at / columns) < within(1, grid.exit_to_bdp) * lines - 0.5).reduce((sum, [, flows]) => sum + flows, 0);
		map.setAttribute("aria-label", `${population.left} exits by minimum RTT and window over bandwidth-delay product; ${under} below it. Arrow keys go through the cells`);
	}

	/** What a cell holds. */
	function point(column: number, line: number, aloud: boolean): void {
		if (!now) return;
		const { cells: [columns, lines], rtt_us: rtt, exit_to_bdp: share } = now.map;
		const at = (part: number, [least, most]: [number, number]): number => least * (most / least) ** part;
		const flows = cells.get(line * columns + column) ?? 0;
		const said = `${flows === 0 ? "No flow" : flows === 1 ? "1 flow" : `${format.count(flows)} flows`} with a minimum RTT of ${format.time(Math.round(at(column / columns, rtt)))} to ${format.time(Math.round(at((column + 1) / columns, rtt)))} that left at ${format.ratio(at(line / lines, share))} to ${format.ratio(at((line + 1) / lines, share))} the BDP`;
		text(under, said);
		if (aloud) say(said);
	}

	map.addEventListener("pointermove", (event) => {
		if (!now) return;
		const box = map.getBoundingClientRect();
		const part = [(event.clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right), 1 - (event.clientY - box.top - EDGE.top) / (box.height - EDGE.top - EDGE.bottom)];
		const [x, y] = now.map.cells.map((cells, axis) => Math.floor((part[axis] ?? 0) * cells));
		if (x != null && y != null && x >= 0 && y >= 0 && x < now.map.cells[0] && y < now.map.cells[1]) point(x, y, false);
	});
	map.addEventListener("keydown", (event) => {
		const step = ({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] } as Record<string, [number, number]>)[event.key];
		if (!step || !now) return;
		event.preventDefault();
		const from = cursor ?? [now.map.cells[0] / 2, now.map.cells[1] / 2];
		cursor = [0, 1].map((axis) => Math.min(Math.max((from[axis] ?? 0) + (step[axis] ?? 0), 0), (now?.map.cells[axis] ?? 1) - 1)) as [number, number];
		point(...cursor, true);
		schedule();
	});
	map.addEventListener("blur", () => {
		cursor = null;
		schedule();
	});

	let plot: uPlot | null = null;
	let shape = "";
	function distribution(population: Population): void {
		const of = MEASURES[measure];
		if (!of) return;
		const found = population.distributions.filter((one) => one.measure === measure);
		const [least, most] = measure === "exit_to_bdp" ? population.map.exit_to_bdp : [0, Math.max(0, ...found.map((one) => one.quantiles.at(-1) ?? 0)) || 1];
		const x = [...new Set([least, ...found.flatMap((one) => one.quantiles.map((value) => Math.min(Math.max(value, least), most))), most])].sort((one, other) => one - other);
		const columns = found.flatMap((one) => {
			let at = 0;
			const share = x.map((limit) => {
				while (at < one.quantiles.length && (one.quantiles[at] ?? Infinity) <= limit) at += 1;
				return (at / one.quantiles.length) * 100;
			});
			const about = (by: number): number[] => share.map((value) => Math.min(Math.max(value + by * 100, 0), 100));
			return [about(one.within), about(-one.within), share];
		});
		const names = found.map((one) => (one.parameter_set ? `${one.algorithm}, set ${one.parameter_set}` : one.algorithm));
		const data = [x, ...columns] as uPlot.AlignedData;
		const next = [measure, ...names].join();
		curves.setAttribute("aria-label", `Cumulative distribution of ${of.title}. ${found.map((one, number) => `${names[number]}: half of ${one.flows} flows at or below ${of.show(one.quantiles[50] ?? 0)}`).join("; ") || "no flow yet"}`);
		fill(
			key,
			...found.map((one, number) => {
				const mark = h("i", { class: "mark" });
				mark.style.background = curve(number).stroke;
				return h("span", { class: "key" }, mark, `${names[number]} (${format.count(one.flows)}; median ${of.show(one.quantiles[50] ?? 0)})`);
			}),
			found.length === 0 && "No flow has told this yet.",
		);
		if (plot && next === shape && (measure === "exit_to_bdp" || plot.scales["x"]?.max === most)) {
			plot.setData(data);
			return;
		}
		plot?.destroy();
		shape = next;
		const axis = { stroke: color("quiet"), grid: { stroke: color("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
		const stepped = uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {};
		plot = new uPlot(
			{
				width: Math.max(curves.clientWidth, 160),
				height: HEIGHT,
				legend: { show: false },
				cursor: { drag: { x: false, y: false } },
				scales: { x: { time: false, range: [least, most], ...(of.log ? { distr: 3 as const, log: 2 as const } : {}) }, y: { range: [0, 100] } },
				axes: [
					{ ...axis, size: 26, values: (_plot, ticks) => ticks.map((tick) => (tick == null ? "" : of.log ? power(tick) : of.show(tick))), space: 60 },
					{ ...axis, size: 48, values: (_plot, ticks) => ticks.map((tick) => `${tick} %`) },
				],
				series: [
					{},
					...names.flatMap((label, number) => [
						{ label: `${label}, most`, width: 0, stroke: "transparent", points: { show: false }, ...stepped },
						{ label: `${label}, least`, width: 0, stroke: "transparent", points: { show: false }, ...stepped },
						{ label, ...curve(number), width: 2, points: { show: false }, ...stepped },
					]),
				],
				bands: names.map((_, number) => ({ series: [1 + number * 3, 2 + number * 3] as [number, number], fill: `${curve(number).stroke}26` })),
			},
			data,
			curves,
		);
	}

	function networkRows(population: Population): void {
		const bounds = population.map.exit_to_bdp;
		const at = (share: number): string => `${100 * within(share, bounds)}%`;
		fill(
			networks,
			...population.networks.map(({ network, flows, median_rtt_us: rtt, exit_to_bdp: exits }) => {
				const [p10, p25, p50, p75, p90] = exits;
				const track = h("span", { class: "box", "aria-hidden": "true" });
				const piece = (name: string, from: number, to?: number): void => {
					const part = h("i", { class: name });
					part.style.left = at(from);
					if (to != null) part.style.right = `${100 - 100 * within(to, bounds)}%`;
					track.append(part);
				};
				piece("one", 1);
				if (p10 != null && p25 != null && p50 != null && p75 != null && p90 != null) {
					piece("whisker", p10, p90);
					piece("half", p25, p75);
					piece("median", p50);
				}
				const query = new URLSearchParams({ filter: `dst ${network}` });
				return h("div", {}, h("a", { href: address("flows", query) }, network), h("span", { class: "number" }, `${format.count(flows)} flow${flows === 1 ? "" : "s"}`), h("span", { class: "number" }, format.time(rtt)), track, h("span", { class: "number" }, p50 == null ? "–" : format.ratio(p50)));
			}),
		);
	}

	const close = live(new URLSearchParams({ limit: "1", population: "true" }), {
		population(next) {
			now = next;
			schedule();
		},
		attached: heard,
	});
	const again = (): void => {
		shape = "";
		schedule();
	};
	const unlisten = onTheme(again);
	const observer = new ResizeObserver(again);
	observer.observe(main);
	return () => {
		close();
		unlisten();
		observer.disconnect();
		cancelAnimationFrame(scheduled);
		plot?.destroy();
	};
}
