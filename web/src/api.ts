// What the server says: /api/openapi.json has it all.

import { events } from "./events";
import { recording } from "./source";
import { askedAgain, reading } from "./token";

export interface Exit {
	reason: string;
	since_start_us: number;
	acknowledged_bytes: number;
	cwnd_segments: number;
	window_bytes: number;
	cwnd_after_segments: number | null;
	in_flight_segments: number;
	mss_bytes: number;
	rtt_us: number;
	min_rtt_us: number;
	undone: number;
}

export interface Flow {
	flow: number;
	local_address: string;
	local_port: number;
	remote_address: string;
	remote_port: number;
	algorithm: string;
	parameter_set: number;
	parameters_generation: number;
	state: string;
	/** Nothing is in flight, and there was no event for a second. */
	idle: boolean;
	started_us: number;
	at_us: number;
	cwnd_segments: number;
	ssthresh_segments: number | null;
	in_flight_segments: number;
	mss_bytes: number;
	rtt_us: number | null;
	min_rtt_us: number | null;
	rate_bps: number | null;
	rate_max_bps: number | null;
	bdp_bytes: number | null;
	/** That is a lower bound. */
	bdp_at_least: boolean;
	acknowledged_bytes: number;
	retransmitted_bytes: number;
	exit: Exit | null;
	regret: Regret | null;
}

/** What an exit has cost. */
export interface Regret {
	window_to_bdp: number;
	early_us: number;
	queue_us: number | null;
}

export interface Listed {
	full: boolean;
	total: number;
	matched: number;
	lost_events: number;
	unobserved_us: number;
	groups?: { name: string; flows: number; listed: number }[];
	order?: string[];
	flows: Flow[];
}

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
] as const;
export type Column = (typeof COLUMNS)[number];
export type Change = { generation: number; first: number; oldest: number } & Record<Column, (number | null)[]>;

export interface Evidence {
	parameters: Record<string, number | string>;
	exports: Record<string, number | number[]>;
	units: Record<string, string>;
	picture: {
		title: string;
		gauge: { value_pct: number; threshold_pct: number; highest_below_pct: number } | null;
		lines: string[];
		bars: number[];
		bars_unit: string;
	} | null;
	track: { title: string; unit: string; limit_title: string } | null;
}

/** Something that happened to a flow. */
export interface Incident {
	at_us: number;
	what: string;
	acknowledged_bytes: number;
	retransmitted_bytes: number;
}

/** What other algorithms would have done. */
export interface Shadow {
	given: {
		rate_bytes_per_second: number;
		base_rtt_us: number;
		window_bytes: number;
		at_least: boolean;
		carried_since_start_us: number | null;
	} | null;
	findings: {
		algorithm: string;
		/** In reports alone. */
		settings?: string[];
		exit: {
			since_start_us: number;
			acknowledged_bytes: number;
			cwnd_segments: number;
			window_bytes: number;
			rtt_us: number;
			min_rtt_us: number;
		} | null;
		regret: Regret | null;
		last_outcome: string;
	}[];
}

/** All flows together. */
export interface Population {
	flows: number;
	left: number;
	map: {
		rtt_us: [number, number];
		exit_to_bdp: [number, number];
		cells: [number, number];
		flows: [number, number, number][];
	};
	distributions: {
		measure: string;
		algorithm: string;
		parameter_set: number;
		flows: number;
		quantiles: number[];
		within: number;
	}[];
	networks: { network: string; flows: number; median_rtt_us: number; exit_to_bdp: number[] }[];
	worst: Record<"early" | "late" | "retransmitted", Flow[]>;
}

export interface Detail extends Flow {
	rounds_only?: string;
	evidence: Evidence;
	beginning: Change;
	life: Change;
	recent: Change | null;
	incidents_from: number;
	incidents: Incident[];
	shadow?: Shadow;
}

export interface Arm {
	flows: number;
	retransmit_ratio_pct: number | null;
	goodput_bps: number | null;
}

export interface Comparison {
	metric: string;
	difference_pct: number | null;
	interval_pct: [number, number] | null;
	margin_pct: number | null;
	verdict: string;
}

export interface Guard {
	control_share_pct: number;
	tripped: { metric: string; at_us: number } | null;
	treated: Arm;
	control: Arm;
	comparisons: Comparison[];
}

export interface Attached {
	algorithms: {
		algorithm: string;
		congestion_control: string;
		state: string;
		explanation: string | null;
		base: string;
		observe: boolean;
		version: string;
		attached_at_us: number;
		expires_at_us: number | null;
		guard: Guard | null;
		parameter_sets: {
			profile: string;
			parameters_generation: number;
			parameters: Record<string, number | string>;
			telemetry_max: string;
		}[];
		flows_started: number;
		flows_adopted: number;
		flows_ended: number;
		flows_without_state: number;
		state_failures: number;
		exits_undone: number;
		ended_in_slow_start: number;
		exits: Record<string, number>;
	}[];
	/** Rules of `onramp select`. */
	selection: { active: boolean; rules: number; first: string[]; unknown?: string } | null;
	/** Why this is an old status. */
	unreadable?: { reason: string; error: string; last_read_us: number | null } | null;
	consumers: { name: string; pid: number; level: string; lost_events: number; unobserved_us: number }[];
}

export interface Declaration {
	name: string;
	unit: string;
	default: number | string;
	allowed: string;
	minimum: number;
	maximum: number;
	choices: string[];
	help: string;
}

export interface Tuned {
	algorithm: string;
	profile: string;
	changed: { name: string; before: number | string; after: number | string }[];
	undo?: string;
}

export interface About {
	version: string;
	writable: boolean;
	offline: boolean;
}

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
	flows?(listed: Listed): void;
	flow?(detail: Detail): void;
	gone?(): void;
	attached?(attached: Attached): void;
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
			if (name === "flows") listener.flows?.(value as Listed);
			else if (name === "flow") listener.flow?.(value as Detail);
			else if (name === "gone") listener.gone?.();
			else if (name === "attached") listener.attached?.(value as Attached);
			else if (name === "population") listener.population?.(value as Population);
		},
		lost: async (refused) => {
			hearing("lost");
			if (refused?.status === 401) await askedAgain(given);
		},
	});
}
