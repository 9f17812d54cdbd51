// Bars on a canvas: bins of an algorithm from the oldest, or rates of ACK pairs as a histogram with their median.

import { bytes, count, rate } from "./format";
import { color } from "./theme";

const HEIGHT = 110;
const FOOT = 18;
const PARTS = 16;

export class Bars {
	readonly element = document.createElement("canvas");

	constructor() {
		this.element.className = "bars";
		this.element.setAttribute("role", "img");
	}

	draw(values: readonly number[], unit: string): void {
		const scale = devicePixelRatio;
		const width = Math.max(this.element.parentElement?.clientWidth ?? 300, 120) - 32;
		this.element.width = width * scale;
		this.element.height = HEIGHT * scale;
		this.element.style.width = `${width}px`;
		this.element.style.height = `${HEIGHT}px`;
		const context = this.element.getContext("2d");
		if (!context || values.length === 0) return;
		context.scale(scale, scale);
		context.clearRect(0, 0, width, HEIGHT);
		context.font = "11px system-ui, sans-serif";
		if (unit === "bit/s") this.histogram(context, values, width);
		else this.bins(context, values, width, unit === "bytes" ? bytes : count);
	}

	private columns(context: CanvasRenderingContext2D, heights: readonly number[], step: number): void {
		const most = Math.max(1, ...heights);
		context.fillStyle = color("c0");
		heights.forEach((value, number) => {
			const height = Math.max((value / most) * (HEIGHT - FOOT - 4), value > 0 ? 2 : 0);
			context.fillRect(number * step, HEIGHT - FOOT - height, Math.max(step - 2, 1), height);
		});
		context.fillStyle = color("quiet");
	}

	private bins(
		context: CanvasRenderingContext2D,
		values: readonly number[],
		width: number,
		show: (value: number) => string,
	): void {
		const step = Math.min(width / values.length, 40);
		this.columns(context, values, step);
		context.textAlign = "left";
		context.fillText("oldest", 0, HEIGHT - 4);
		context.textAlign = "right";
		context.fillText(`newest: ${show(values.at(-1) ?? 0)}`, step * values.length, HEIGHT - 4);
		this.element.setAttribute(
			"aria-label",
			`${values.length} bins, the most is ${show(Math.max(...values))}, the newest ${show(values.at(-1) ?? 0)}`,
		);
	}

	/** By logarithms: pairs of a burst lie far above the rest. */
	private histogram(context: CanvasRenderingContext2D, values: readonly number[], width: number): void {
		const sorted = [...values].sort((one, other) => one - other);
		const [least, most] = [Math.max(sorted[0] ?? 1, 1), Math.max(sorted.at(-1) ?? 1, 1)];
		const median = sorted[Math.floor(sorted.length / 2)] ?? 0;
		const part = (value: number): number =>
			most > least ? Math.log(Math.max(value, 1) / least) / Math.log(most / least) : 0.5;
		const heights = new Array<number>(PARTS).fill(0);
		for (const value of sorted) {
			const at = Math.min(Math.floor(part(value) * PARTS), PARTS - 1);
			heights[at] = (heights[at] ?? 0) + 1;
		}
		this.columns(context, heights, width / PARTS);
		const x = Math.min(Math.max(part(median) * width, 1), width - 1);
		context.strokeStyle = color("exit");
		context.lineWidth = 2;
		context.setLineDash([4, 3]);
		context.beginPath();
		context.moveTo(x, 0);
		context.lineTo(x, HEIGHT - FOOT);
		context.stroke();
		context.setLineDash([]);
		context.textAlign = "left";
		context.fillText(rate(least), 0, HEIGHT - 4);
		context.textAlign = "right";
		context.fillText(rate(most), width, HEIGHT - 4);
		context.fillStyle = color("exit");
		context.textAlign = x > width / 2 ? "right" : "left";
		context.fillText(`median ${rate(median)}`, x + (x > width / 2 ? -6 : 6), 10);
		this.element.setAttribute(
			"aria-label",
			`Histogram of ${values.length} rates from ${rate(least)} to ${rate(most)}, median ${rate(median)}`,
		);
	}
}
