// What is drawn, as files.

import type { Picture } from "./chart";

/** Hands a file to the browser. */
export function save(name: string, blob: Blob): void {
	const link = document.createElement("a");
	link.href = URL.createObjectURL(blob);
	link.download = name.replaceAll(/[^A-Za-z0-9.]+/g, "-").toLowerCase();
	link.click();
	// Once the browser has taken it.
	setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A row for each time: seconds, and the value of each curve; empty: none. */
export function csv({ x, curves }: Picture): string {
	const shown = curves.filter((curve) => !curve.edge);
	const quoted = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
	const head = ["seconds", ...shown.map((curve) => quoted(curve.label))].join();
	const rows = x.map((at, row) => [at, ...shown.map((curve) => curve.values[row] ?? "")].join());
	return `${[head, ...rows].join("\n")}\n`;
}
