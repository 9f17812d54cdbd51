// Charts over time: curves, areas, a shaded slow start, lines at exits, marks of events.

import uPlot from "uplot";
import { h } from "./dom";
import { csv, save } from "./save";
import { color } from "./theme";
import { join, part, shownRange, zoom } from "./zoom";

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

/** A moment, as a line from top to bottom. */
export interface Moment {
	x: number;
	label: string;
	color: string;
}

/** Something at a place; shapes identify it without their colours. */
export interface Mark {
	x: number;
	y: number;
	shape: Shape;
	color: string;
	label?: string;
}
export type Shape = "dot" | "ring" | "triangle" | "cross" | "diamond";

export interface Picture {
	/** Seconds since the first data. */
	x: number[];
	curves: Curve[];
	/** Pairs of curves, the upper first, and the colour of what is between them. */
	areas?: { between: [number, number]; color: string }[];
	show: (value: number) => string;
	moments: Moment[];
	marks?: Mark[];
	/** What the shapes of marks stand for. */
	key?: [Shape, string, string][];
	/** From when to when slow start lasted; `null`: not shown. */
	slowStart: [number, number] | null;
	/** Doubling is a straight line. */
	logarithmic?: boolean;
}

const SYNC = uPlot.sync("flow");
const HEIGHT = 230;
const GLYPHS: Record<Shape, string> = {
	dot: "M4 4m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0",
	ring: "M4 4m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0",
	triangle: "M0 1H8L4 8Z",
	cross: "M1 1L7 7M7 1L1 7",
	diamond: "M4 0L8 4L4 8L0 4Z",
};

/** A piece of a legend. */
function sign(width: number, path: string, stroke: string, dash: number[], fill: string): SVGSVGElement {
	const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
	svg.setAttribute("viewBox", `-1 -1 ${width + 2} 10`);
	svg.setAttribute("width", String(width));
	svg.setAttribute("aria-hidden", "true");
	const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
	shape.setAttribute("d", path);
	shape.setAttribute("stroke", stroke);
	shape.setAttribute("fill", fill);
	shape.setAttribute("stroke-width", dash.length || fill === "none" ? "2.2" : "1");
	shape.setAttribute("stroke-dasharray", dash.join(" "));
	svg.append(shape);
	return svg;
}

function keyed(svg: SVGSVGElement, label: string): HTMLElement {
	const key = document.createElement("span");
	key.className = "key";
	key.append(svg, label);
	return key;
}

/** One chart; made anew only when its curves change. */
export class Chart {
	readonly element: HTMLElement;
	private readonly legend: HTMLElement;
	private readonly canvas: HTMLElement;
	private plot: uPlot | null = null;
	private picture: Picture | null = null;
	private shape = "";
	private readonly observer: ResizeObserver;
	/** Called with the time of a place that was clicked. */
	onPick: ((x: number) => void) | null = null;

	constructor(
		private readonly title: string,
		private readonly note: string,
	) {
		this.element = document.createElement("section");
		this.element.className = "card chart";
		const tool = (name: string, does: string, click: () => void): HTMLElement =>
			h("button", { type: "button", title: does, "aria-label": `${title}: ${does}`, click }, name);
		const head = h(
			"h2",
			{},
			h("span", { class: "title" }, title),
			h(
				"span",
				{ class: "tools" },
				tool("CSV", "save the values as CSV", () => this.saveValues()),
				tool("PNG", "save the chart as PNG", () => this.savePicture()),
			),
		);
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
		join(this);
	}

	extent(): [number, number] | null {
		const [first, last] = [this.picture?.x[0], this.picture?.x.at(-1)];
		return first == null || last == null ? null : [first, last];
	}

	/** Shows the stretch of time that all charts do. */
	rescale(): void {
		const { plot } = this;
		const range = shownRange();
		if (range) plot?.setScale("x", { min: range[0], max: range[1] });
		else plot?.setData(plot.data);
	}

	private width(): number {
		return Math.max(this.canvas.clientWidth, 120);
	}

	/** Colours are chosen when it is made. */
	forget(): void {
		this.shape = "";
	}

	destroy(): void {
		part(this);
		this.observer.disconnect();
		this.plot?.destroy();
		this.plot = null;
	}

	private saveValues(): void {
		if (this.picture) save(`${this.title}.csv`, new Blob([csv(this.picture)], { type: "text/csv" }));
	}

	/** As it is drawn, with its title and curves above it. */
	private savePicture(): void {
		const { plot, picture } = this;
		if (!plot || !picture) return;
		const scale = devicePixelRatio;
		const above = 40 * scale;
		const whole = h("canvas", { width: plot.ctx.canvas.width, height: plot.ctx.canvas.height + above });
		const ctx = whole.getContext("2d");
		if (!ctx) return;
		ctx.fillStyle = color("card");
		ctx.fillRect(0, 0, whole.width, whole.height);
		ctx.fillStyle = color("ink");
		ctx.font = `600 ${13 * scale}px system-ui, sans-serif`;
		ctx.fillText(this.title, 8 * scale, 16 * scale);
		ctx.font = `${11 * scale}px system-ui, sans-serif`;
		let at = 8 * scale;
		for (const curve of picture.curves.filter((one) => !one.edge)) {
			ctx.fillStyle = curve.color;
			ctx.fillText(`— ${curve.label}`, at, 34 * scale);
			at += ctx.measureText(`— ${curve.label}`).width + 14 * scale;
		}
		ctx.drawImage(plot.ctx.canvas, 0, above);
		whole.toBlob((blob) => {
			if (blob) save(`${this.title}.png`, blob);
		});
	}

	draw(picture: Picture): void {
		this.picture = picture;
		const values = picture.curves.map((curve) => (picture.logarithmic ? positive(curve.values) : curve.values));
		const data = [picture.x, ...values] as uPlot.AlignedData;
		const shape = [
			String(picture.logarithmic ?? false),
			...picture.curves.map((curve) => curve.label),
			...(picture.key ?? []).map(([, label]) => label),
		].join();
		this.describe(picture);
		if (this.plot && shape === this.shape) {
			this.plot.setData(data);
			return;
		}
		this.plot?.destroy();
		this.shape = shape;
		this.plot = new uPlot(this.options(picture), data, this.canvas);
		if (shownRange()) this.rescale();
		this.legend.replaceChildren(
			...picture.curves
				.filter((curve) => !curve.edge)
				.map((curve) => keyed(sign(22, "M0 4H22", curve.color, curve.dash ?? [], "none"), curve.label)),
			...(picture.key ?? []).map(([glyph, label, paint]) =>
				keyed(sign(8, GLYPHS[glyph], paint, [], glyph === "ring" || glyph === "cross" ? "none" : paint), label),
			),
		);
	}

	/** For those who do not see it: what is drawn, and how it stands at the end. */
	private describe(picture: Picture): void {
		const last = picture.curves
			.filter((curve) => !curve.edge)
			.map((curve) => {
				const value = curve.values.findLast((one) => one != null);
				return value == null ? "" : `${curve.label} ${picture.show(value)}`;
			});
		const moments = picture.moments.map((one) => `${one.label} at ${one.x.toFixed(2)} s`);
		this.canvas.setAttribute(
			"aria-label",
			`${this.title}: ${this.note}. At the end: ${last.filter(Boolean).join(", ")}. ${moments.join(", ")}`,
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
			padding: [18, 10, 0, 0],
			cursor: {
				sync: { key: SYNC.key },
				drag: { x: true, y: false, setScale: false },
				points: { size: 6 },
				bind: {
					dblclick: () => () => {
						zoom(null);
						return null;
					},
				},
			},
			scales: {
				// New values do not end a zoom.
				x: { time: false, auto: () => shownRange() == null },
				y: picture.logarithmic
					? {
							distr: 3,
							log: 2,
							range: (_plot, min, max) => [
								2 ** Math.floor(Math.log2(min || 1)),
								2 ** Math.ceil(Math.log2((max || 1) * 1.03)),
							],
						}
					: { range: (_plot, _min, max) => [0, (max || 1) * 1.06] },
			},
			axes: [
				{
					...axis,
					size: 26,
					space: 70,
					values: (_plot, ticks) => ticks.map((tick) => `${+tick.toFixed(3)} s`),
				},
				{
					...axis,
					size: 74,
					space: 34,
					values: (_plot, ticks) =>
						ticks.map((tick) => (tick == null ? "" : (this.picture?.show(tick) ?? ""))),
				},
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
			hooks: {
				drawClear: [(plot) => this.shade(plot)],
				draw: [(plot) => this.mark(plot)],
				ready: [(plot) => this.pick(plot)],
				setCursor: [(plot) => this.showCursor(plot)],
				setSelect: [(plot) => this.zoomed(plot)],
			},
		};
	}

	private pick(plot: uPlot): void {
		let from = 0;
		plot.over.addEventListener("mousedown", (event) => {
			from = event.clientX;
		});
		plot.over.addEventListener("click", (event) => {
			// A drag zooms.
			if (Math.abs(event.clientX - from) < 4) this.onPick?.(plot.posToVal(event.offsetX, "x"));
		});
	}

	/** A stretch was dragged over, here or in another chart. */
	private zoomed(plot: uPlot): void {
		const { left, width } = plot.select;
		if (width === 0) return;
		plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
		if (plot.cursor.event) zoom([plot.posToVal(left, "x"), plot.posToVal(left + width, "x")]);
	}

	/** Slow start is shaded. */
	private shade(plot: uPlot): void {
		const phase = this.picture?.slowStart;
		if (!phase || !this.picture?.x.length) return;
		const { left, top, height, width } = plot.bbox;
		const within = (x: number): number =>
			Math.min(Math.max(x === Infinity ? left + width : plot.valToPos(x, "x", true), left), left + width);
		const [from, to] = [within(phase[0]), within(phase[1])];
		if (to <= from) return;
		plot.ctx.save();
		plot.ctx.fillStyle = color("phase");
		plot.ctx.fillRect(from, top, to - from, height);
		plot.ctx.restore();
	}

	/** Moments are lines with their names, as far as there is room; events are marks at their places. */
	private mark(plot: uPlot): void {
		const { picture } = this;
		if (!picture) return;
		const { left, top, height, width } = plot.bbox;
		const { ctx } = plot;
		const scale = devicePixelRatio;
		const inside = (x: number): boolean => x >= left - 1 && x <= left + width + 1;
		ctx.save();
		ctx.font = `600 ${11 * scale}px system-ui, sans-serif`;
		ctx.lineWidth = 1.5 * scale;
		// Above the chart, else below its edge: up to where there is a name already.
		const rows = [
			[-5, -Infinity],
			[11, -Infinity],
		] as [number, number][];
		for (const moment of [...picture.moments].sort((one, other) => one.x - other.x)) {
			const x = plot.valToPos(moment.x, "x", true);
			if (!inside(x)) continue;
			ctx.strokeStyle = moment.color;
			ctx.fillStyle = moment.color;
			ctx.setLineDash([4 * scale, 3 * scale]);
			ctx.beginPath();
			ctx.moveTo(x, top);
			ctx.lineTo(x, top + height);
			ctx.stroke();
			const wide = ctx.measureText(moment.label).width + 8 * scale;
			const right = x + wide > left + width;
			const from = right ? x - wide : x;
			const row = rows.find(([, taken]) => from >= taken);
			if (!row) continue;
			ctx.textAlign = right ? "right" : "left";
			ctx.fillText(moment.label, x + (right ? -4 : 4) * scale, top + row[0] * scale);
			row[1] = from + wide;
		}
		ctx.setLineDash([]);
		const taken: [number, number, number][] = [];
		for (const mark of picture.marks ?? []) {
			const [x, y] = [plot.valToPos(mark.x, "x", true), plot.valToPos(mark.y, "y", true)];
			if (!inside(x) || y < top - 4 * scale || y > top + height + 4 * scale) continue;
			glyph(ctx, mark.shape, x, y, 4.5 * scale, mark.color);
			if (!mark.label) continue;
			const wide = ctx.measureText(mark.label).width;
			const right = x + wide + 10 * scale > left + width;
			const from = right ? x - wide - 8 * scale : x + 8 * scale;
			// Next to its mark, else as near above or below as there is room.
			const free = [0, -1, 1, -2, 2, -3, 3, -4]
				.map((lines) => y + lines * 13 * scale)
				.find(
					(at) =>
						at > top &&
						at < top + height - 4 * scale &&
						taken.every(([a, b, c]) => Math.abs(at - c) > 11 * scale || from > b || from + wide < a),
				);
			if (free == null) continue;
			taken.push([from, from + wide, free]);
			ctx.fillStyle = mark.color;
			ctx.textAlign = "left";
			ctx.fillText(mark.label, from, free + 4 * scale);
		}
		ctx.restore();
	}

	/** The values under the pointer, in the legend. */
	private showCursor(plot: uPlot): void {
		const { picture } = this;
		if (!picture) return;
		const at = plot.cursor.idx;
		const shown = picture.curves.filter((curve) => !curve.edge);
		shown.forEach((curve, number) => {
			const key = this.legend.children[number];
			const value = at == null ? null : curve.values[at];
			if (key?.lastChild)
				key.lastChild.textContent = value == null ? curve.label : `${curve.label} ${picture.show(value)}`;
		});
		const x = at == null ? null : picture.x[at];
		this.legend.dataset.at = x == null ? "" : `at ${x.toFixed(3)} s`;
	}
}

/** A logarithm has no place for what is not above 0. */
const positive = (values: (number | null)[]): (number | null)[] =>
	values.map((value) => (value != null && value > 0 ? value : null));

function glyph(ctx: CanvasRenderingContext2D, shape: Shape, x: number, y: number, size: number, paint: string): void {
	ctx.beginPath();
	ctx.fillStyle = paint;
	ctx.strokeStyle = paint;
	if (shape === "dot" || shape === "ring") {
		ctx.arc(x, y, size, 0, 2 * Math.PI);
	} else if (shape === "cross") {
		ctx.moveTo(x - size, y - size);
		ctx.lineTo(x + size, y + size);
		ctx.moveTo(x + size, y - size);
		ctx.lineTo(x - size, y + size);
	} else {
		const triangle = shape === "triangle";
		ctx.moveTo(x, y + size);
		ctx.lineTo(x + size, triangle ? y - size : y);
		if (!triangle) ctx.lineTo(x, y - size);
		ctx.lineTo(x - size, triangle ? y - size : y);
		ctx.closePath();
	}
	if (shape === "ring" || shape === "cross") ctx.stroke();
	else ctx.fill();
}
