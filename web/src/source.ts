// Whose flows are shown: those that are live, those of a recording that was opened, whose name is part of addresses,
// or that with which this document was saved.

let name = "";
let live = true;
let saved = false;

/** Whether the server has flows of its own, and not only what is opened in the page. */
export const isLive = (): boolean => live;

export function setLive(has: boolean): void {
	live = has;
}

/** Whether there is no server: what is shown is all there is. */
export const isSaved = (): boolean => saved;

export function setSaved(): void {
	saved = true;
	live = false;
}

/** The recording's name; empty: live. */
export const recording = (): string => name;

export function choose(next: string): void {
	name = next;
}

/** The address of a view of the same flows. */
export function address(path: string, query = new URLSearchParams()): string {
	if (name) query.set("recording", name);
	const text = String(query);
	return text ? `#/${path}?${text}` : `#/${path}`;
}
