// Whose flows are shown: those that are live, or those of a recording that was opened. Its name is part of addresses.

let name = "";

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
