// Quantities and exits as people say them.

import type { Exit, Flow } from "./schema";

function significant(value: number): string {
	return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value: number, units: readonly string[]): string {
	let step = 0;
	while (value >= 999.5 && step + 1 < units.length) {
		value /= 1000;
		step += 1;
	}
	return `${step === 0 ? String(Math.round(value)) : significant(value)} ${units[step]}`;
}

export const bytes = (value: number): string => scaled(value, ["B", "kB", "MB", "GB", "TB"]);
export const rate = (value: number | null): string =>
	value == null ? "–" : scaled(value, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]);
export const count = (value: number): string => value.toLocaleString("en");
export const segments = (value: number | null): string => (value == null ? "–" : count(value));

/** Microseconds. */
export function time(us: number | null): string {
	if (us == null) return "–";
	if (us < 1000) return `${us} µs`;
	if (us < 1e6) return `${significant(us / 1e3)} ms`;
	if (us < 120e6) return `${significant(us / 1e6)} s`;
	if (us < 7200e6) return `${Math.floor(us / 60e6)} min ${Math.floor((us / 1e6) % 60)} s`;
	return `${Math.floor(us / 3600e6)} h ${Math.floor((us / 60e6) % 60)} min`;
}

export function end(address: string, port: number): string {
	return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

export const words = (name: string): string => name.replaceAll("_", " ");

/** Window at the exit over the bandwidth-delay product. */
export function overBdp(flow: Flow): number | null {
	return flow.exit && flow.bdp_bytes ? flow.exit.window_bytes / flow.bdp_bytes : null;
}

/** The same in words: of a product that is a lower bound an upper one. */
export function exitOverBdp(flow: Flow): string {
	const share = overBdp(flow);
	return share != null && flow.bdp_at_least ? `≤ ${ratio(share)}` : ratio(share);
}

/** Time that the exit cost. */
export function lost(flow: Flow): string {
	if (!flow.regret) return "–";
	return flow.regret.early_us ? time(flow.regret.early_us) : "0";
}

/** A bandwidth-delay product. */
export const product = (value: number | null, atLeast: boolean): string =>
	value == null ? "–" : `${atLeast ? "≥ " : ""}${bytes(value)}`;

export function ratio(value: number | null): string {
	return value == null ? "–" : `${value >= 100 ? value.toFixed(0) : value.toFixed(2)}×`;
}

const BY: Record<string, string> = {
	algorithm: "by its algorithm",
	loss: "by loss",
	ecn: "by an ECN mark",
	timeout: "by a retransmission timeout",
	local_congestion: "because a queue of this host refused a packet",
	ssthresh: "at an ssthresh that was set before",
	cached_ssthresh: "at an ssthresh kept from an earlier connection",
};

/** How a flow exited slow start, in words. */
export function exitInWords(flow: Flow): string {
	const exit: Exit | null = flow.exit;
	if (!exit) {
		switch (flow.state) {
			case "adopted":
				return "Was past its slow start when this control took it.";
			case "slow_start":
				return "Is in its first slow start.";
			case "ended":
				return "Ended in slow start.";
			default:
				return "Has not sent enough yet.";
		}
	}
	const share = overBdp(flow);
	const after = exit.cwnd_after_segments;
	const parts = [
		`Left slow start ${BY[exit.reason] ?? `by ${words(exit.reason)}`} ${time(exit.since_start_us)} after ` +
			"its first data",
		`with ${bytes(exit.acknowledged_bytes)} acknowledged and a window of ${count(exit.cwnd_segments)} ` +
			`segments (${bytes(exit.window_bytes)})`,
	];
	let said = `${parts.join(", ")}.`;
	if (share != null)
		said += flow.bdp_at_least
			? ` That is at most ${ratio(share)} its bandwidth-delay product: it has not kept its peak rate for ` +
				"four rounds, so its path may give more."
			: ` That is ${ratio(share)} its bandwidth-delay product.`;
	if (exit.rtt_us && exit.min_rtt_us) {
		const queue = exit.rtt_us - exit.min_rtt_us;
		said += ` The RTT was ${time(exit.rtt_us)}, ${time(Math.max(queue, 0))} over its minimum.`;
	}
	if (after != null && after !== exit.cwnd_segments) said += ` The window became ${count(after)} segments.`;
	if (flow.regret?.early_us)
		said +=
			` Leaving early has cost ${time(flow.regret.early_us)}: so much later than by doubling did the window ` +
			"carry what the path gave.";
	if (flow.regret?.queue_us) said += ` Leaving late has left a queue of ${time(flow.regret.queue_us)}.`;
	if (exit.undone)
		said += ` ${exit.undone === 1 ? "An exit before it" : `${exit.undone} exits before it`} proved spurious.`;
	return said;
}
