// Cumulative distributions of one measure, a curve for each algorithm and parameter set.

import uPlot from "uplot";
import { fill, h } from "./dom";
import * as format from "./format";
import { power } from "./heat";
import type { Population } from "./schema";
import { color, curve } from "./theme";

interface Measure {
	title: string;
	show: (value: number) => string;
	log: boolean;
}

type One = Population["distributions"][number];

const HEIGHT = 280;
const MEASURES: Record<string, Measure> = {
	exit_to_bdp: { title: "exit / BDP", show: format.ratio, log: true },
	early_seconds: { title: "seconds lost by leaving early", show: (value) => `${+value.toFixed(2)} s`, log: false },
	queue_seconds: {
		title: "queue left by leaving late",
		show: (value) => format.time(Math.round(value * 1e6)),
		log: false,
	},
	retransmit_ratio: {
		title: "share of bytes retransmitted",
		show: (value) => `${+(value * 100).toFixed(2)} %`,
		log: false,
	},
};

const name = (one: One): string => (one.parameter_set ? `${one.algorithm}, set ${one.parameter_set}` : one.algorithm);
const median = (one: One): number => one.quantiles[50] ?? 0;

export class Distribution {
	readonly choice: HTMLSelectElement;
	readonly key = h("p", { class: "legend" });
	readonly curves = h("div", {
		class: "plot",
		role: "img",
		"aria-label": "Cumulative distribution: waiting for flows",
	});
	private measure = "exit_to_bdp";
	private plot: uPlot | null = null;
	/** What the plot was made for: another measure or other curves take another plot. */
	private shape = "";

	constructor(schedule: () => void) {
		this.choice = h(
			"select",
			{
				id: "measure",
				change: () => {
					this.measure = this.choice.value;
					this.forget();
					schedule();
				},
			},
			...Object.entries(MEASURES).map(([value, { title }]) => h("option", { value }, title)),
		);
	}

	/** The next drawing makes a new plot. */
	forget(): void {
		this.shape = "";
	}

	destroy(): void {
		this.plot?.destroy();
	}

	draw(population: Population): void {
		const measure = MEASURES[this.measure];
		if (!measure) return;
		const found = population.distributions.filter((one) => one.measure === this.measure);
		const range = this.range(population, found);
		const data = this.data(found, range);
		this.describe(measure, found);
		const shape = [this.measure, ...found.map(name)].join();
		const fits = this.measure === "exit_to_bdp" || this.plot?.scales.x?.max === range[1];
		if (this.plot && shape === this.shape && fits) {
			this.plot.setData(data);
			return;
		}
		this.plot?.destroy();
		this.shape = shape;
		this.plot = new uPlot(this.options(measure, found.map(name), range), data, this.curves);
	}

	private range(population: Population, found: One[]): [number, number] {
		if (this.measure === "exit_to_bdp") return population.map.exit_to_bdp;
		return [0, Math.max(0, ...found.map((one) => one.quantiles.at(-1) ?? 0)) || 1];
	}

	/** Of each distribution its band's upper and lower bound, and itself. */
	private data(found: One[], [least, most]: [number, number]): uPlot.AlignedData {
		const within = (value: number): number => Math.min(Math.max(value, least), most);
		const values = found.flatMap((one) => one.quantiles.map(within));
		const x = [...new Set([least, ...values, most])].sort((one, other) => one - other);
		const columns = found.flatMap((one) => {
			let at = 0;
			const share = x.map((limit) => {
				while (at < one.quantiles.length && (one.quantiles[at] ?? Infinity) <= limit) at += 1;
				return (at / one.quantiles.length) * 100;
			});
			const about = (by: number): number[] => share.map((value) => Math.min(Math.max(value + by * 100, 0), 100));
			return [about(one.within), about(-one.within), share];
		});
		return [x, ...columns] as uPlot.AlignedData;
	}

	private describe({ title, show }: Measure, found: One[]): void {
		const half = (one: One): string => `${name(one)}: half of ${one.flows} flows at or below ${show(median(one))}`;
		const label = found.map(half).join("; ") || "no flow yet";
		this.curves.setAttribute("aria-label", `Cumulative distribution of ${title}. ${label}`);
		const entries = found.map((one, number) => {
			const mark = h("i", { class: "mark" });
			mark.style.background = curve(number).stroke;
			const label = `${name(one)} (${format.count(one.flows)}; median ${show(median(one))})`;
			return h("span", { class: "key" }, mark, label);
		});
		fill(this.key, ...entries, found.length === 0 && "No flow has reported this yet.");
	}

	private options({ log, show }: Measure, names: string[], range: [number, number]): uPlot.Options {
		const axis = {
			stroke: color("quiet"),
			grid: { stroke: color("grid"), width: 1 },
			ticks: { show: false },
			font: "11px system-ui, sans-serif",
		};
		const tick = (value: number | null): string => (value == null ? "" : log ? power(value) : show(value));
		return {
			width: Math.max(this.curves.clientWidth, 160),
			height: HEIGHT,
			legend: { show: false },
			cursor: { drag: { x: false, y: false } },
			scales: {
				x: { time: false, range, ...(log ? { distr: 3 as const, log: 2 as const } : {}) },
				y: { range: [0, 100] },
			},
			axes: [
				{ ...axis, size: 26, values: (_plot, ticks) => ticks.map(tick), space: 60 },
				{ ...axis, size: 48, values: (_plot, ticks) => ticks.map((value) => `${value} %`) },
			],
			series: [{}, ...names.flatMap((label, number) => this.series(label, number))],
			bands: names.map((_, number) => ({
				series: [1 + number * 3, 2 + number * 3] as [number, number],
				fill: `${curve(number).stroke}26`,
			})),
		};
	}

	private series(label: string, number: number): uPlot.Series[] {
		const stepped = uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {};
		const bound = { width: 0, stroke: "transparent", points: { show: false }, ...stepped };
		return [
			{ ...bound, label: `${label}, most` },
			{ ...bound, label: `${label}, least` },
			{ label, ...curve(number), width: 2, points: { show: false }, ...stepped },
		];
	}
}
