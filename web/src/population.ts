// Flows as a population: where they leave slow start, by RTT and by algorithm, and which are worst.

import uPlot from "uplot";
import { apply, type Attached, type Flow, type Listed, live } from "./api";
import { fill, h, text } from "./dom";
import * as format from "./format";
import { color, curve, onTheme } from "./theme";

const WORST = 8;
/** Milliseconds between two pictures. */
const PERIOD = 1000;
/** Bounds of the heat map: RTT in µs, exit over BDP; and its cells. */
const RTT: [number, number] = [1e2, 1e6 * 2];
const SHARE: [number, number] = [1 / 128, 32];
const CELLS: [number, number] = [40, 24];

interface Exit {
	flow: Flow;
	share: number;
	rtt: number;
}

const within = (value: number, [least, most]: [number, number]): number =>
	Math.log(Math.min(Math.max(value, least), most) / least) / Math.log(most / least);

export function populationView(main: HTMLElement, heard: (attached: Attached) => void): () => void {
	const flows = new Map<string, Flow>();
	let pending = 0;
	let drawn = 0;
	const summary = h("p", { class: "summary", role: "status" }, "Waiting for flows …");
	const map = h("canvas", { class: "heat", role: "img", "aria-label": "Exits by minimum RTT: waiting for flows" });
	const under = h("p", { class: "quiet", "aria-hidden": "true" }, "Point at a cell to see its flows.");
	const curves = h("div", { class: "plot", role: "img", "aria-label": "Cumulative distribution of exits: waiting for flows" });
	const key = h("p", { class: "legend" });
	const early = h("tbody");
	const late = h("tbody");
	const list = (title: string, note: string, body: HTMLElement): HTMLElement =>
		h(
			"section",
			{ class: "card" },
			h("h2", {}, title),
			h("p", { class: "quiet" }, note),
			h(
				"table",
				{ class: "worst" },
				h("thead", {}, h("tr", {}, ...["Flow", "Algorithm", "Exit / BDP", "min RTT", "Sent again"].map((name) => h("th", { scope: "col" }, name)))),
				body,
			),
		);
	fill(
		main,
		h("h1", {}, "Where flows leave slow start"),
		summary,
		h(
			"div",
			{ class: "charts" },
			h("section", { class: "card chart" }, h("h2", {}, "Exit / BDP over minimum RTT"), h("p", { class: "quiet" }, "Darker cells hold more flows; the line is the bandwidth-delay product."), map, under),
			h("section", { class: "card chart" }, h("h2", {}, "Share of flows that left at or below"), key, curves),
		),
		h(
			"div",
			{ class: "charts" },
			list("Left earliest", "Windows far below the bandwidth-delay product: seconds are lost.", early),
			list("Left latest", "Windows far above it: what does not fit is queued or lost.", late),
		),
		h("p", { class: "quiet" }, "The bandwidth-delay product is a flow's highest delivery rate of a round times its minimum RTT: what it has seen of its path so far."),
	);

	let plot: uPlot | null = null;
	let shape = "";
	let cells = new Map<number, Exit[]>();

	function exits(): Exit[] {
		const found: Exit[] = [];
		for (const flow of flows.values()) {
			const share = format.overBdp(flow);
			if (share != null && flow.min_rtt_us) found.push({ flow, share, rtt: flow.min_rtt_us });
		}
		return found;
	}

	function draw(): void {
		pending = 0;
		drawn = performance.now();
		const found = exits();
		const median = [...found].sort((one, other) => one.share - other.share)[Math.floor(found.length / 2)];
		const told = median ? `; half of them left at or below ${format.ratio(median.share)} the bandwidth-delay product` : "";
		text(summary, `${format.count(found.length)} of ${format.count(flows.size)} flows have left slow start and told a rate${told}`);
		heat(found);
		distribution(found);
		const sorted = [...found].sort((one, other) => one.share - other.share);
		const below = sorted.filter((exit) => exit.share < 1);
		const above = sorted.filter((exit) => exit.share >= 1).reverse();
		fill(early, ...rows(below));
		fill(late, ...rows(above));
	}

	function rows(found: Exit[]): HTMLElement[] {
		if (found.length === 0) return [h("tr", {}, h("td", { colspan: 5, class: "quiet" }, "none"))];
		return found.slice(0, WORST).map(({ flow, share, rtt }) =>
			h(
				"tr",
				{},
				h("td", {}, h("a", { href: `#/flow/${flow.flow}` }, format.end(flow.remote_address, flow.remote_port))),
				h("td", {}, flow.algorithm),
				h("td", { class: "number" }, format.ratio(share)),
				h("td", { class: "number" }, format.time(rtt)),
				h("td", { class: "number" }, format.bytes(flow.retransmitted_bytes)),
			),
		);
	}

	const EDGE = { left: 52, bottom: 30, top: 8, right: 8 };
	function heat(found: Exit[]): void {
		const width = Math.max(map.parentElement?.clientWidth ?? 320, 200) - 32;
		const height = 260;
		const scale = devicePixelRatio;
		map.width = width * scale;
		map.height = height * scale;
		map.style.width = `${width}px`;
		map.style.height = `${height}px`;
		cells = new Map();
		for (const exit of found) {
			const x = Math.min(Math.floor(within(exit.rtt, RTT) * CELLS[0]), CELLS[0] - 1);
			const y = Math.min(Math.floor(within(exit.share, SHARE) * CELLS[1]), CELLS[1] - 1);
			const at = y * CELLS[0] + x;
			const there = cells.get(at);
			if (there) there.push(exit);
			else cells.set(at, [exit]);
		}
		const context = map.getContext("2d");
		if (!context) return;
		context.scale(scale, scale);
		context.clearRect(0, 0, width, height);
		const inner = { width: width - EDGE.left - EDGE.right, height: height - EDGE.top - EDGE.bottom };
		const px = (part: number): number => EDGE.left + part * inner.width;
		const py = (part: number): number => EDGE.top + (1 - part) * inner.height;
		context.font = "11px system-ui, sans-serif";
		context.fillStyle = color("quiet");
		context.strokeStyle = color("grid");
		for (const us of [1e3, 1e4, 1e5, 1e6]) {
			const x = px(within(us, RTT));
			context.textAlign = "center";
			context.fillText(us < 1e6 ? `${us / 1e3} ms` : "1 s", x, height - 10);
			context.beginPath();
			context.moveTo(x, EDGE.top);
			context.lineTo(x, EDGE.top + inner.height);
			context.stroke();
		}
		for (const share of [1 / 64, 1 / 16, 1 / 4, 1, 4, 16]) {
			const y = py(within(share, SHARE));
			context.textAlign = "right";
			context.fillText(share >= 1 ? `${share}×` : `1/${1 / share}×`, EDGE.left - 8, y + 4);
			context.beginPath();
			context.moveTo(EDGE.left, y);
			context.lineTo(EDGE.left + inner.width, y);
			context.stroke();
		}
		const most = Math.max(1, ...[...cells.values()].map((one) => one.length));
		for (const [at, there] of cells) {
			const [x, y] = [at % CELLS[0], Math.floor(at / CELLS[0])];
			context.globalAlpha = 0.3 + 0.7 * (Math.log1p(there.length) / Math.log1p(most));
			context.fillStyle = color("c0");
			context.fillRect(px(x / CELLS[0]), py((y + 1) / CELLS[1]), inner.width / CELLS[0] - 1, inner.height / CELLS[1] - 1);
		}
		context.globalAlpha = 1;
		context.strokeStyle = color("exit");
		context.lineWidth = 1.5;
		context.setLineDash([5, 4]);
		context.beginPath();
		context.moveTo(EDGE.left, py(within(1, SHARE)));
		context.lineTo(EDGE.left + inner.width, py(within(1, SHARE)));
		context.stroke();
		context.setLineDash([]);
		const low = found.filter((exit) => exit.share < 1).length;
		map.setAttribute("aria-label", `${found.length} exits by minimum RTT and window over bandwidth-delay product; ${low} below it, ${found.length - low} at it or above`);
	}

	map.addEventListener("pointermove", (event) => {
		const box = map.getBoundingClientRect();
		const x = Math.floor(((event.clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right)) * CELLS[0]);
		const y = Math.floor((1 - (event.clientY - box.top - EDGE.top) / (box.height - EDGE.top - EDGE.bottom)) * CELLS[1]);
		const there = cells.get(y * CELLS[0] + x) ?? [];
		const names = [...new Set(there.map((exit) => exit.flow.algorithm))].join(", ");
		text(under, there.length === 0 ? "no flow" : `${there.length} flow${there.length === 1 ? "" : "s"} (${names}), ${format.ratio(there[0]?.share ?? 0)} at ${format.time(there[0]?.rtt ?? 0)}`);
	});

	function distribution(found: Exit[]): void {
		const byAlgorithm = new Map<string, number[]>();
		for (const exit of found) {
			const there = byAlgorithm.get(exit.flow.algorithm) ?? [];
			there.push(Math.min(Math.max(exit.share, SHARE[0]), SHARE[1]));
			byAlgorithm.set(exit.flow.algorithm, there);
		}
		const names = [...byAlgorithm.keys()].sort();
		const x = [...new Set([SHARE[0], ...[...byAlgorithm.values()].flat(), SHARE[1]])].sort((one, other) => one - other);
		const columns = names.map((name) => {
			const values = (byAlgorithm.get(name) ?? []).sort((one, other) => one - other);
			let at = 0;
			return x.map((limit) => {
				while (at < values.length && (values[at] ?? Infinity) <= limit) at += 1;
				return (at / values.length) * 100;
			});
		});
		const data = [x, ...columns] as uPlot.AlignedData;
		const next = names.join();
		curves.setAttribute("aria-label", `Cumulative distribution of exits over the bandwidth-delay product of ${names.join(", ") || "no algorithm yet"}`);
		if (plot && next === shape) {
			plot.setData(data);
			return;
		}
		plot?.destroy();
		shape = next;
		const axis = { stroke: color("quiet"), grid: { stroke: color("grid"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
		const width = (): number => Math.max(curves.clientWidth, 160);
		plot = new uPlot(
			{
				width: width(),
				height: 260,
				legend: { show: false },
				cursor: { drag: { x: false, y: false } },
				scales: { x: { time: false, distr: 3, log: 2, range: SHARE }, y: { range: [0, 100] } },
				axes: [
					{ ...axis, size: 26, values: (_plot, ticks) => ticks.map((tick) => (tick == null ? "" : tick >= 1 ? `${tick}×` : `1/${Math.round(1 / tick)}×`)), space: 46 },
					{ ...axis, size: 48, values: (_plot, ticks) => ticks.map((tick) => `${tick} %`) },
				],
				series: [
					{},
					...names.map((name, number) => ({
						label: name,
						...curve(number),
						width: 2,
						points: { show: false },
						...(uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
					})),
				],
			},
			data,
			curves,
		);
		fill(
			key,
			...names.map((name, number) => {
				const { stroke } = curve(number);
				const mark = h("i", { class: "mark" });
				mark.style.background = stroke;
				return h("span", { class: "key" }, mark, `${name} (${byAlgorithm.get(name)?.length ?? 0})`);
			}),
		);
	}

	function schedule(): void {
		if (!pending) pending = window.setTimeout(draw, Math.max(0, drawn + PERIOD - performance.now()));
	}

	const close = live(new URLSearchParams({ limit: "10000" }), {
		flows(news: Listed) {
			apply(flows, news);
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
		window.clearTimeout(pending);
		plot?.destroy();
	};
}
