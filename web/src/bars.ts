// Bars on a canvas: bins of an algorithm, rates of ACK pairs.

import { bytes, count, rate } from "./format";
import { color } from "./theme";

const HEIGHT = 90;

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
		const most = Math.max(1, ...values);
		const show = unit === "bytes" ? bytes : unit === "bit/s" ? rate : count;
		this.element.setAttribute("aria-label", `${values.length} values, the most is ${show(most)}`);
		const context = this.element.getContext("2d");
		if (!context || values.length === 0) return;
		context.scale(scale, scale);
		context.clearRect(0, 0, width, HEIGHT);
		context.fillStyle = color("c0");
		const step = Math.min(width / values.length, 40);
		values.forEach((value, number) => {
			const height = Math.max((value / most) * (HEIGHT - 4), value > 0 ? 2 : 0);
			context.fillRect(number * step, HEIGHT - height, Math.max(step - 2, 1), height);
		});
	}
}
