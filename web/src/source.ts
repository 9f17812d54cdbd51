// Whose flows are shown: those that are live, or those of a recording that was opened. Its name is part of addresses.

let name = "";
let live = true;

/** Whether the server has flows of its own, and not only what is opened in the page. */
export const isLive = (): boolean => live;

export function setLive(has: boolean): void {
	live = has;
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
