// Exits as a map: minimum RTT by window over bandwidth-delay product, both on logarithmic axes.

import { h, say, text } from "./dom";
import * as format from "./format";
import type { Population } from "./schema";
import { color } from "./theme";

type Span = [number, number];
type Cell = [number, number];

const EDGE = { left: 52, bottom: 30, top: 8, right: 8 };
const HEIGHT = 280;
const RTTS_US = [1e3, 1e4, 1e5, 1e6];
const SHARES = [1 / 64, 1 / 16, 1 / 4, 1, 4, 16];
const STEPS: Record<string, Cell> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

const clamp = (value: number, least: number, most: number): number => Math.min(Math.max(value, least), most);

/** Where a value lies on a logarithmic axis, 0 to 1. */
export const within = (value: number, [least, most]: Span): number =>
	Math.log(clamp(value, least, most) / least) / Math.log(most / least);

/** The value at a place of a logarithmic axis. */
const at = (part: number, [least, most]: Span): number => least * (most / least) ** part;

/** A power of two. */
export const power = (value: number): string => (value >= 1 ? `${value}×` : `1/${Math.round(1 / value)}×`);

/** What is drawn on, and where parts of the map are on it. */
class Canvas {
	readonly inner: { width: number; height: number };

	constructor(
		readonly context: CanvasRenderingContext2D,
		width: number,
	) {
		this.inner = { width: width - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
	}

	x(part: number): number {
		return EDGE.left + part * this.inner.width;
	}

	y(part: number): number {
		return EDGE.top + (1 - part) * this.inner.height;
	}

	line(from: Cell, to: Cell): void {
		this.context.beginPath();
		this.context.moveTo(...from);
		this.context.lineTo(...to);
		this.context.stroke();
	}

	/** A line over all RTTs. */
	across(y: number): void {
		this.line([EDGE.left, y], [EDGE.left + this.inner.width, y]);
	}

	label(value: string, x: number, y: number, align: CanvasTextAlign): void {
		this.context.textAlign = align;
		this.context.fillText(value, x, y);
	}
}

export class Heat {
	readonly map = h("canvas", {
		class: "heat",
		role: "img",
		tabindex: "0",
		"aria-label": "Exits by minimum RTT: waiting for flows",
	});
	/** What the cell that is pointed at holds. */
	readonly under = h("p", { class: "quiet", "aria-live": "off" }, "Point at a cell to see its flows.");
	private readonly cells = new Map<number, number>();
	private cursor: Cell | null = null;
	private now: Population | null = null;

	constructor(private readonly schedule: () => void) {
		this.map.addEventListener("pointermove", (event) => this.pointed(event));
		this.map.addEventListener("keydown", (event) => this.key(event));
		this.map.addEventListener("blur", () => {
			this.cursor = null;
			this.schedule();
		});
	}

	draw(population: Population): void {
		this.now = population;
		const { cells: size, flows } = population.map;
		this.cells.clear();
		for (const [column, line, count] of flows) this.cells.set(line * size[0] + column, count);
		const canvas = this.canvas();
		if (!canvas) return;
		this.drawGrid(canvas, population.map);
		this.drawCells(canvas, size);
		this.drawProduct(canvas, population.map);
		if (this.cursor) this.drawCursor(canvas, size, this.cursor);
		this.describe(population);
	}

	private canvas(): Canvas | null {
		const width = Math.max(this.map.parentElement?.clientWidth ?? 320, 200) - 32;
		const ratio = devicePixelRatio;
		this.map.width = width * ratio;
		this.map.height = HEIGHT * ratio;
		this.map.style.width = `${width}px`;
		this.map.style.height = `${HEIGHT}px`;
		const context = this.map.getContext("2d");
		if (!context) return null;
		context.scale(ratio, ratio);
		context.clearRect(0, 0, width, HEIGHT);
		return new Canvas(context, width);
	}

	private drawGrid(canvas: Canvas, grid: Population["map"]): void {
		const { context, inner } = canvas;
		context.font = "11px system-ui, sans-serif";
		context.fillStyle = color("quiet");
		context.strokeStyle = color("grid");
		for (const us of RTTS_US) {
			const x = canvas.x(within(us, grid.rtt_us));
			canvas.label(us < 1e6 ? `${us / 1e3} ms` : "1 s", x, HEIGHT - 10, "center");
			canvas.line([x, EDGE.top], [x, EDGE.top + inner.height]);
		}
		for (const share of SHARES) {
			const y = canvas.y(within(share, grid.exit_to_bdp));
			canvas.label(power(share), EDGE.left - 8, y + 4, "right");
			canvas.across(y);
		}
	}

	private drawCells(canvas: Canvas, [columns, lines]: Cell): void {
		const { context, inner } = canvas;
		const most = Math.max(1, ...this.cells.values());
		context.fillStyle = color("c0");
		for (const [cell, flows] of this.cells) {
			const [x, y] = [cell % columns, Math.floor(cell / columns)];
			context.globalAlpha = 0.25 + 0.75 * (most > 1 ? Math.log(flows) / Math.log(most) : 1);
			const [left, top] = [canvas.x(x / columns), canvas.y((y + 1) / lines)];
			context.fillRect(left, top, inner.width / columns - 1, inner.height / lines - 1);
		}
		context.globalAlpha = 1;
	}

	/** Where the window is the bandwidth-delay product. */
	private drawProduct(canvas: Canvas, grid: Population["map"]): void {
		const { context } = canvas;
		context.strokeStyle = color("exit");
		context.lineWidth = 1.5;
		context.setLineDash([5, 4]);
		canvas.across(canvas.y(within(1, grid.exit_to_bdp)));
		context.setLineDash([]);
	}

	private drawCursor(canvas: Canvas, [columns, lines]: Cell, [column, line]: Cell): void {
		const { context, inner } = canvas;
		context.strokeStyle = color("ink");
		const [left, top] = [canvas.x(column / columns) - 1, canvas.y((line + 1) / lines) - 1];
		context.strokeRect(left, top, inner.width / columns + 1, inner.height / lines + 1);
	}

	private describe({ left, map: grid }: Population): void {
		const [columns, lines] = grid.cells;
		const product = within(1, grid.exit_to_bdp) * lines - 0.5;
		const below = [...this.cells].filter(([cell]) => Math.floor(cell / columns) < product);
		const flows = below.reduce((sum, [, count]) => sum + count, 0);
		const label =
			`${left} exits by minimum RTT and window over bandwidth-delay product; ${flows} below it. ` +
			"Arrow keys go through the cells";
		this.map.setAttribute("aria-label", label);
	}

	/** Says what a cell holds. */
	private point([column, line]: Cell, aloud: boolean): void {
		if (!this.now) return;
		const { cells, rtt_us: rtt, exit_to_bdp: share } = this.now.map;
		const [columns, lines] = cells;
		const flows = this.cells.get(line * columns + column) ?? 0;
		const count = flows === 0 ? "No flow" : flows === 1 ? "1 flow" : `${format.count(flows)} flows`;
		const time = (part: number): string => format.time(Math.round(at(part / columns, rtt)));
		const ratio = (part: number): string => format.ratio(at(part / lines, share));
		const said =
			`${count} with a minimum RTT of ${time(column)} to ${time(column + 1)} ` +
			`that left at ${ratio(line)} to ${ratio(line + 1)} the BDP`;
		text(this.under, said);
		if (aloud) say(said);
	}

	private pointed(event: PointerEvent): void {
		if (!this.now) return;
		const box = this.map.getBoundingClientRect();
		const [columns, lines] = this.now.map.cells;
		const across = (event.clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right);
		const down = (event.clientY - box.top - EDGE.top) / (box.height - EDGE.top - EDGE.bottom);
		const [x, y] = [Math.floor(across * columns), Math.floor((1 - down) * lines)];
		if (x >= 0 && y >= 0 && x < columns && y < lines) this.point([x, y], false);
	}

	private key(event: KeyboardEvent): void {
		const step = STEPS[event.key];
		if (!step || !this.now) return;
		event.preventDefault();
		const [columns, lines] = this.now.map.cells;
		const [x, y] = this.cursor ?? [columns / 2, lines / 2];
		this.cursor = [clamp(x + step[0], 0, columns - 1), clamp(y + step[1], 0, lines - 1)];
		this.point(this.cursor, true);
		this.schedule();
	}
}
