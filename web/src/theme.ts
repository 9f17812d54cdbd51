// Colours, by the browser's setting or the reader's. Okabe and Ito's palette, which colour-blind people can
// distinguish; no curve is identified by its colour alone.

export type Theme = "auto" | "light" | "dark";
const KEY = "onramp-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

export function theme(): Theme {
	const kept = localStorage.getItem(KEY);
	return kept === "light" || kept === "dark" ? kept : "auto";
}

export function setTheme(next: Theme): void {
	if (next === "auto") localStorage.removeItem(KEY);
	else localStorage.setItem(KEY, next);
	apply();
}

export function apply(): void {
	const choice = theme();
	document.documentElement.dataset.theme = choice === "auto" ? (dark.matches ? "dark" : "light") : choice;
	for (const listener of listeners) listener();
}

/** Called when colours change, until what is returned is called. */
export function onTheme(listener: () => void): () => void {
	listeners.add(listener);
	return () => listeners.delete(listener);
}

dark.addEventListener("change", apply);

/** A colour of the style sheet. */
export function color(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Colour and dashes of the n-th curve. */
export function curve(number: number): { stroke: string; dash: number[] } {
	const dashes = [[], [6, 3], [2, 3], [10, 3, 2, 3]];
	return { stroke: color(`c${number % 6}`), dash: dashes[Math.floor(number / 2) % 4] ?? [] };
}
