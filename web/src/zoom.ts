// The stretch of time that all charts of the document show: what is zoomed in one is in all.

type Range = [number, number];

/** A chart, as far as its axis of time is concerned. */
interface Zoomed {
	/** From when to when it has something to show. */
	extent(): Range | null;
	rescale(): void;
}

const charts = new Set<Zoomed>();
let range: Range | null = null;
let changed: () => void = () => {};

/** Seconds from and to; `null`: all of it. */
export const shownRange = (): Range | null => range;

export function onZoom(listener: () => void): void {
	changed = listener;
}

export function join(chart: Zoomed): void {
	charts.add(chart);
}

/** The last that leaves takes the zoom with it. */
export function part(chart: Zoomed): void {
	charts.delete(chart);
	if (charts.size === 0) range = null;
}

export function zoom(next: Range | null): void {
	range = next;
	for (const chart of charts) chart.rescale();
	changed();
}

function whole(): Range | null {
	const extents = [...charts].map((chart) => chart.extent()).filter((one) => one != null);
	if (extents.length === 0) return null;
	return [Math.min(...extents.map(([from]) => from)), Math.max(...extents.map(([, to]) => to))];
}

/** Shows so many times the stretch, moved by a part of it; all of it where that is no less. */
export function zoomBy(times: number, moved = 0): void {
	const all = whole();
	if (!all) return;
	const [from, to] = range ?? all;
	const length = (to - from) * times;
	const begin = Math.min(Math.max((from + to - length) / 2 + moved * length, all[0]), all[1] - length);
	zoom(length < all[1] - all[0] ? [begin, begin + length] : null);
}
