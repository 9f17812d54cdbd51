// Charts of a flow over time: one axis of time, a shaded slow start, a line at the exit.

import uPlot from "uplot";
import { color } from "./theme";

export interface Curve {
	label: string;
	color: string;
	values: (number | null)[];
	dash?: number[];
	width?: number;
	/** Holds until the next value. */
	steps?: boolean;
	/** Only the edge of an area. */
	edge?: boolean;
}

export interface Picture {
	/** Seconds since the first data. */
	x: number[];
	curves: Curve[];
	/** Pairs of curves, the upper first, and the colour of what is between them. */
	areas?: { between: [number, number]; color: string }[];
	show: (value: number) => string;
	/** When slow start ended. */
	exit: number | null;
	exitLabel: string;
	/** Since its first data. */
	began: number;
}

const SYNC = uPlot.sync("flow");
const HEIGHT = 220;

/** One chart; made anew only when its curves change. */
export class Chart {
	readonly element: HTMLElement;
	private readonly legend: HTMLElement;
	private readonly canvas: HTMLElement;
	private plot: uPlot | null = null;
	private picture: Picture | null = null;
	private shape = "";
	private readonly observer: ResizeObserver;

	constructor(title: string, note: string) {
		this.element = document.createElement("section");
		this.element.className = "card chart";
		const head = document.createElement("h2");
		head.textContent = title;
		this.legend = document.createElement("p");
		this.legend.className = "legend";
		this.canvas = document.createElement("div");
		this.canvas.className = "plot";
		this.canvas.setAttribute("role", "img");
		this.canvas.setAttribute("aria-label", `${title}: ${note}`);
		this.element.append(head, this.legend, this.canvas);
		this.observer = new ResizeObserver(() => {
			this.plot?.setSize({ width: this.width(), height: HEIGHT });
		});
		this.observer.observe(this.canvas);
	}

	private width(): number {
		return Math.max(this.canvas.clientWidth, 120);
	}

	/** Colours are chosen when it is made. */
	forget(): void {
		this.shape = "";
	}

	destroy(): void {
		this.observer.disconnect();
		this.plot?.destroy();
		this.plot = null;
	}

	draw(picture: Picture): void {
		this.picture = picture;
		const data = [picture.x, ...picture.curves.map((curve) => curve.values)] as uPlot.AlignedData;
		const shape = picture.curves.map((curve) => curve.label).join();
		if (this.plot && shape === this.shape) {
			this.plot.setData(data);
			return;
		}
		this.plot?.destroy();
		this.shape = shape;
		this.plot = new uPlot(this.options(picture), data, this.canvas);
		this.legend.replaceChildren(
			...picture.curves.filter((curve) => !curve.edge).map((curve) => {
				const key = document.createElement("span");
				key.className = "key";
				const line = document.createElementNS("http://www.w3.org/2000/svg", "svg");
				line.setAttribute("viewBox", "0 0 22 8");
				line.setAttribute("aria-hidden", "true");
				const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
				path.setAttribute("d", "M0 4H22");
				path.setAttribute("stroke", curve.color);
				path.setAttribute("stroke-width", "2.5");
				path.setAttribute("stroke-dasharray", (curve.dash ?? []).join(" "));
				line.append(path);
				key.append(line, curve.label);
				return key;
			}),
		);
	}

	private options(picture: Picture): uPlot.Options {
		const axis = {
			stroke: color("quiet"),
			grid: { stroke: color("grid"), width: 1 },
			ticks: { show: false },
			font: "11px system-ui, sans-serif",
		};
		return {
			width: this.width(),
			height: HEIGHT,
			legend: { show: false },
			padding: [14, 10, 0, 0],
			cursor: { sync: { key: SYNC.key }, drag: { x: true, y: false }, points: { size: 6 } },
			scales: { x: { time: false }, y: { range: (_plot, _min, max) => [0, (max || 1) * 1.06] } },
			axes: [
				{ ...axis, size: 26, space: 70, values: (_plot, ticks) => ticks.map((tick) => `${+tick.toFixed(3)} s`) },
				{ ...axis, size: 74, space: 34, values: (_plot, ticks) => ticks.map((tick) => this.picture?.show(tick) ?? "") },
			],
			series: [
				{},
				...picture.curves.map((curve) => ({
					label: curve.label,
					stroke: curve.edge ? "transparent" : curve.color,
					width: curve.edge ? 0 : (curve.width ?? 2),
					dash: curve.dash ?? [],
					points: { show: false },
					spanGaps: true,
					...(curve.steps && uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
				})),
			],
			bands: (picture.areas ?? []).map(({ between, color: fill }) => ({
				series: [between[0] + 1, between[1] + 1] as [number, number],
				fill,
			})),
			hooks: { drawClear: [(plot) => this.shade(plot)], draw: [(plot) => this.mark(plot)], setCursor: [(plot) => this.tell(plot)] },
		};
	}

	/** Slow start is shaded. */
	private shade(plot: uPlot): void {
		const { picture } = this;
		if (!picture || picture.x.length === 0) return;
		const { left, top, height, width } = plot.bbox;
		const until = picture.exit ?? Infinity;
		const from = Math.max(plot.valToPos(picture.began, "x", true), left);
		const to = Number.isFinite(until) ? Math.min(plot.valToPos(until, "x", true), left + width) : from;
		if (to <= from) return;
		plot.ctx.save();
		plot.ctx.fillStyle = color("phase");
		plot.ctx.fillRect(from, top, to - from, height);
		plot.ctx.restore();
	}

	/** The exit is a line with its reason. */
	private mark(plot: uPlot): void {
		const { picture } = this;
		if (!picture || picture.exit == null) return;
		const { left, top, height, width } = plot.bbox;
		const x = plot.valToPos(picture.exit, "x", true);
		if (x < left || x > left + width) return;
		const { ctx } = plot;
		const scale = devicePixelRatio;
		ctx.save();
		ctx.strokeStyle = color("exit");
		ctx.lineWidth = 1.5 * scale;
		ctx.setLineDash([4 * scale, 3 * scale]);
		ctx.beginPath();
		ctx.moveTo(x, top);
		ctx.lineTo(x, top + height);
		ctx.stroke();
		ctx.font = `600 ${11 * scale}px system-ui, sans-serif`;
		ctx.fillStyle = color("exit");
		const label = `exit: ${picture.exitLabel}`;
		const right = x + ctx.measureText(label).width + 6 * scale > left + width;
		ctx.textAlign = right ? "right" : "left";
		ctx.fillText(label, x + (right ? -5 : 5) * scale, top - 4 * scale);
		ctx.restore();
	}

	/** The values under the pointer, in the legend. */
	private tell(plot: uPlot): void {
		const { picture } = this;
		if (!picture) return;
		const at = plot.cursor.idx;
		const shown = picture.curves.filter((curve) => !curve.edge);
		shown.forEach((curve, number) => {
			const key = this.legend.children[number];
			const value = at == null ? null : curve.values[at];
			if (key?.lastChild) key.lastChild.textContent = value == null ? curve.label : `${curve.label} ${picture.show(value)}`;
		});
	}
}
