// What the server says: /api/openapi.json has it all, and schema.ts is made of that.

import { events } from "./events";
import type { FlowDetail, LiveFlows, Past, Population, Status, Tuned } from "./schema";
import { recording } from "./source";
import { askedAgain, reading } from "./token";

export const COLUMNS = [
	"at_us",
	"cwnd_segments",
	"cwnd_min_segments",
	"cwnd_max_segments",
	"ssthresh_segments",
	"in_flight_segments",
	"in_flight_min_segments",
	"in_flight_max_segments",
	"rtt_us",
	"rtt_min_us",
	"rtt_max_us",
	"rate_bps",
	"acknowledged_bytes",
	"sent_bytes",
	"window_end_bytes",
	"pacing_rate_bps",
	"watched",
	"limit",
] as const satisfies readonly (keyof Past)[];
export type Column = (typeof COLUMNS)[number];

/** Why there is no other answer. */
export class Refused extends Error {
	constructor(
		readonly status: number,
		said: string,
	) {
		super(said);
	}
}

async function answer<T>(response: Response): Promise<T> {
	const body = await response.text();
	if (response.ok) return JSON.parse(body) as T;
	let said = `${response.status} ${response.statusText}`;
	try {
		said = (JSON.parse(body) as { error: string }).error;
	} catch {
		// What stands in between may answer something else.
	}
	throw new Refused(response.status, said);
}

/** Asks, and for the secret of reading where it takes that. */
async function ask<T>(path: string, request: RequestInit = {}): Promise<T> {
	for (;;) {
		const headers = reading();
		const response = await fetch(path, { ...request, headers });
		if (response.status !== 401 || !(await askedAgain(headers))) return answer<T>(response);
	}
}

export const get = async <T>(path: string): Promise<T> => ask<T>(path);
export const post = async <T>(path: string, form: FormData): Promise<T> => ask<T>(path, { method: "POST", body: form });

export async function tune(
	token: string,
	algorithm: string,
	profile: string,
	settings: string[],
	dryRun = false,
): Promise<Tuned> {
	const body = JSON.stringify({ algorithm, profile, settings, dry_run: dryRun });
	const headers = { "Content-Type": "application/json", Authorization: `Bearer ${token}` };
	return answer<Tuned>(await fetch("/api/tune", { method: "POST", headers, body }));
}

export interface Listener {
	flows?(listed: LiveFlows): void;
	flow?(detail: FlowDetail): void;
	gone?(): void;
	attached?(attached: Status): void;
	population?(population: Population): void;
}

/** Whether the server's events arrive. */
export type Hearing = "waiting" | "live" | "lost";

let hearing: (state: Hearing) => void = () => {};
export function onHearing(listener: (state: Hearing) => void): void {
	hearing = listener;
}

/** Hears the server until what is returned is called. */
export function live(query: URLSearchParams, listener: Listener): () => void {
	if (recording()) query.set("recording", recording());
	let given = reading();
	hearing("waiting");
	return events(`/api/live?${query}`, () => (given = reading()), {
		open: () => hearing("live"),
		event: (name, data) => {
			hearing("live");
			const value: unknown = JSON.parse(data);
			if (name === "flows") listener.flows?.(value as LiveFlows);
			else if (name === "flow") listener.flow?.(value as FlowDetail);
			else if (name === "gone") listener.gone?.();
			else if (name === "attached") listener.attached?.(value as Status);
			else if (name === "population") listener.population?.(value as Population);
		},
		lost: async (refused) => {
			hearing("lost");
			if (refused?.status === 401) await askedAgain(given);
		},
	});
}
