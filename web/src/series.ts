// The charts of one flow, from a server, a recording or a run of the lab.

import { Chart, type Curve, type Mark, type Moment, type Shape } from "./chart";
import { Charts } from "./charts";
import * as format from "./format";
import { color } from "./theme";

type Values = (number | null)[];

/** A flow over time, by columns. */
export interface Series {
	/** Seconds since its first data. */
	x: number[];
	sent: Values;
	acknowledged: Values;
	/** Of what is acknowledged and the rest that is not in flight: selectively acknowledged, or taken for lost. */
	held: Values;
	/** Up to which byte the receiver takes data. */
	windowEnd: Values;
	cwnd: Values;
	cwndSpan: [Values, Values] | null;
	ssthresh: Values;
	inFlight: Values;
	inFlightSpan: [Values, Values] | null;
	rtt: Values;
	rttMost: Values | null;
	minRtt: number | null;
	mss: number;
	/** The bandwidth-delay product of the path; at least this where it may be more. */
	bdp: { segments: number; atLeast: boolean } | null;
	/** Windows on a logarithmic axis. */
	logarithmic: boolean;
	/** A moment to be pointed at. */
	moment: Moment | null;
	rate: Values;
	pacing: Values;
	/** What its algorithm watches. */
	track: { title: string; unit: string; limitTitle: string; values: Values; limit: Values } | null;
	exit: { x: number; label: string } | null;
	/** The end of slow start is not the exit where that is not known. */
	slowStart: [number, number] | null;
	/** Losses and the like. */
	incidents: { x: number; what: string; acknowledged: number }[];
	/** Where others would have left: windows in segments; and how CUBIC would have gone on, until the path was full. */
	others: { x: number; algorithm: string; cwnd: number; continuation: [number, number][] }[];
}

const EVENTS: Record<string, [Shape, string]> = {
	recovery: ["triangle", "fast recovery: retransmitted"],
	loss: ["cross", "timeout"],
	cwr: ["diamond", "congestion mark"],
	undone: ["ring", "was no loss"],
	resent: ["triangle", "retransmitted"],
};

export class FlowCharts extends Charts<"sequence" | "window" | "rtt" | "rate" | "track"> {
	/** The last is not of every algorithm. */
	constructor() {
		super({
			sequence: new Chart("Time-sequence", "bytes sent and acknowledged over time"),
			window: new Chart("Window", "congestion window, threshold and segments in flight over time"),
			rtt: new Chart("RTT and queue", "round-trip time over its minimum; what is between them is queue"),
			rate: new Chart(
				"Pacing and delivery rate",
				"bytes delivered in a round trip over its duration, and the rate of pacing",
			),
			track: new Chart(
				"What its algorithm watches",
				"the algorithm's own quantity, and the limit at which it exits slow start",
			),
		});
		this.charts.track.element.hidden = true;
	}

	draw(flow: Series): void {
		const [c0, c1, c2, c3, exit] = [color("c0"), color("c1"), color("c2"), color("c3"), color("exit")];
		const moments: Moment[] = flow.exit ? [{ x: flow.exit.x, label: `exit: ${flow.exit.label}`, color: exit }] : [];
		if (flow.moment) moments.push(flow.moment);
		const common = { x: flow.x, moments, slowStart: flow.slowStart };
		const segments = (value: number): string => format.count(Math.round(value));
		const paint = (what: string): string =>
			what === "cwr" ? c1 : what === "undone" ? color("quiet") : color("bad");
		const marks: Mark[] = flow.incidents
			.filter((one) => one.what in EVENTS)
			.map((one) => ({
				x: one.x,
				y: one.acknowledged,
				shape: EVENTS[one.what]?.[0] ?? "dot",
				color: paint(one.what),
			}));
		const kinds = [...new Set(flow.incidents.map((one) => one.what))].filter((what) => what in EVENTS);
		const held = flow.held.some((value, at) => (value ?? 0) > (flow.acknowledged[at] ?? 0));
		const windowEnd = moderate(flow.windowEnd, flow.sent, 1.5);
		this.charts.sequence.draw({
			...common,
			curves: [
				{ label: "sent", color: c1, values: flow.sent, dash: [5, 3] },
				{ label: "acknowledged", color: c0, values: flow.acknowledged },
				...(held
					? [
							{
								label: "selectively acknowledged or lost",
								color: c3,
								values: flow.held,
								width: 1,
								dash: [2, 2],
							},
						]
					: []),
				...(windowEnd.some((value) => value != null)
					? [{ label: "receive window", color: c2, values: windowEnd, width: 1.5, dash: [10, 3, 2, 3] }]
					: []),
			],
			areas: [
				{ between: [0, 1], color: `${c1}22` },
				...(held ? [{ between: [2, 1] as [number, number], color: `${c3}44` }] : []),
			],
			show: format.bytes,
			marks,
			key: kinds.map((what) => [EVENTS[what]?.[0] ?? "dot", EVENTS[what]?.[1] ?? what, paint(what)]),
		});
		const spans = [flow.cwndSpan, flow.inFlightSpan];
		this.charts.window.draw({
			...common,
			curves: [
				...spans.flatMap((span, number) =>
					span ? [edge(`most ${number}`, span[0]), edge(`least ${number}`, span[1])] : [],
				),
				...ceilings(flow),
				...flow.others.filter(({ continuation }) => continuation.length > 0).map(ghost(flow.x)),
				{ label: "in flight", color: c2, values: flow.inFlight, width: 1.5, dash: [2, 2] },
				{
					label: "ssthresh",
					color: c3,
					values: moderate(flow.ssthresh, flow.cwndSpan?.[0] ?? flow.cwnd, 2),
					dash: [8, 4],
					steps: true,
				},
				{ label: "cwnd", color: c0, values: flow.cwnd },
			],
			areas: spans.every(Boolean)
				? [
						{ between: [0, 1], color: `${c0}33` },
						{ between: [2, 3], color: `${c2}2a` },
					]
				: [],
			show: segments,
			logarithmic: flow.logarithmic,
			marks: flow.others.map((one) => ({
				x: one.x,
				y: one.cwnd,
				shape: "ring",
				color: color("ink"),
				label: one.algorithm,
			})),
			key: flow.others.length ? [["ring", "others would have left", color("ink")]] : [],
		});
		this.charts.rtt.draw({
			...common,
			curves: [
				edge("most", flow.rttMost ?? flow.rtt),
				{ label: "minimum", color: c0, values: flow.x.map(() => flow.minRtt), dash: [4, 3] },
				{ label: "RTT", color: c1, values: flow.rtt },
			],
			areas: [{ between: [0, 1], color: `${c1}33` }],
			show: (us) => format.time(Math.round(us)),
		});
		const paced = flow.pacing.some((value) => value != null);
		this.charts.rate.draw({
			...common,
			curves: [
				...(paced
					? [
							{
								label: "pacing",
								color: c3,
								values: moderate(flow.pacing, flow.rate, 4),
								width: 1.5,
								dash: [6, 3],
							},
						]
					: []),
				{ label: "delivered", color: c2, values: flow.rate, steps: true },
			],
			show: format.rate,
		});
		const { track } = flow;
		this.charts.track.element.hidden = !track?.values.some((value) => value != null);
		if (track && !this.charts.track.element.hidden) {
			const head = this.charts.track.element.querySelector(".title");
			if (head) head.textContent = `What its algorithm watches: ${track.title}`;
			this.charts.track.draw({
				...common,
				curves: [
					{ label: track.limitTitle, color: exit, values: track.limit, dash: [6, 3], steps: true },
					{ label: track.title, color: c0, values: track.values, steps: true },
				],
				show:
					track.unit === "percent"
						? (value) => `${Math.round(value)} %`
						: track.unit === "us"
							? (us) => format.time(Math.round(us))
							: segments,
			});
		}
	}
}

/** What a window can be: by doubling each round trip, by the path, by the receiver. */
function ceilings(flow: Series): Curve[] {
	const quiet = color("quiet");
	const most = Math.max(1, ...(flow.cwndSpan?.[0] ?? flow.cwnd).map((value) => value ?? 0));
	const received = flow.windowEnd.map((end, at) => {
		const bytes = end == null ? null : end - (flow.acknowledged[at] ?? 0);
		return bytes == null || !flow.mss ? null : bytes / flow.mss;
	});
	const lines: Curve[] = [];
	const doubled = doubling(flow, most);
	if (doubled) lines.push({ label: "doubling", color: quiet, values: doubled, width: 1, dash: [1, 3] });
	if (flow.bdp && flow.bdp.segments < 4 * most) {
		const label = flow.bdp.atLeast ? "BDP at least" : "BDP";
		const values = flow.x.map(() => flow.bdp?.segments ?? null);
		lines.push({ label, color: color("good"), values, width: 1, dash: [12, 4] });
	}
	const receiver = moderate(received, [most], 2);
	if (receiver.some((value) => value != null))
		lines.push({ label: "receive window", color: color("c1"), values: receiver, width: 1, dash: [10, 3, 2, 3] });
	return lines;
}

/** The window that another algorithm would have had after its exit. */
const ghost =
	(x: number[]) =>
	({ algorithm, continuation }: Series["others"][number]): Curve => {
		const values = x.map((at) => {
			const next = continuation.findIndex(([later]) => later >= at);
			const [one, two] = [continuation[Math.max(0, next - 1)], continuation[next]];
			if (!one || !two || at < one[0]) return null;
			return one[1] + (two[0] > one[0] ? ((two[1] - one[1]) * (at - one[0])) / (two[0] - one[0]) : 0);
		});
		return { label: `${algorithm} instead`, color: color("ink"), values, width: 1, dash: [2, 4] };
	};

/** From the first window that was seen, if that was in slow start, up to twice what was reached. */
function doubling(flow: Series, most: number): Values | null {
	const first = flow.cwnd.findIndex((value) => value != null);
	const [at, from] = [flow.x[first], flow.cwnd[first]];
	if (at == null || from == null || !flow.minRtt || !flow.slowStart || at >= flow.slowStart[1]) return null;
	const roundTrip = flow.minRtt / 1e6;
	return flow.x.map((x) => {
		const value = from * 2 ** ((x - at) / roundTrip);
		return x < at || value > 2 * most ? null : value;
	});
}

const edge = (label: string, values: Values) => ({ label, color: "transparent", values, edge: true });

/** What is so many times above all that was reached is no limit, and would flatten all else. */
function moderate(limits: Values, reached: Values, times: number): Values {
	const most = Math.max(1, ...reached.map((value) => value ?? 0));
	return limits.map((value) => (value == null || value > most * times ? null : value));
}
