// All flows: a list of any length, of which only what is seen is in the document.

import { type Attached, type Flow, get, type Listed, live } from "./api";
import { fill, h, text } from "./dom";
import * as format from "./format";
import { address, isLive, recording } from "./source";

const ROW = 40;
/** Rows beyond what is seen. */
const MORE = 8;
/** Flows that are told at once: what is seen is somewhere in the middle. */
const WINDOW = 200;
/** Milliseconds between two windows, while somebody scrolls. */
const SCROLL = 120;

interface Column {
	key: string;
	title: string;
	sort?: string;
	class?: string;
	show(flow: Flow): string;
}

const COLUMNS: Column[] = [
	{ key: "remote", title: "Remote", sort: "remote", class: "wide", show: (flow) => format.end(flow.remote_address, flow.remote_port) },
	{ key: "local", title: "Local", sort: "local", class: "wide", show: (flow) => format.end(flow.local_address, flow.local_port) },
	{ key: "algorithm", title: "Algorithm", sort: "algorithm", show: (flow) => flow.algorithm },
	{ key: "state", title: "State", sort: "state", show: (flow) => state(flow) },
	{ key: "exit", title: "Exit / BDP", sort: "exit_bdp", class: "number", show: (flow) => format.exitOverBdp(flow) },
	{ key: "cwnd", title: "cwnd", sort: "cwnd", class: "number", show: (flow) => format.segments(flow.cwnd_segments) },
	{ key: "rtt", title: "RTT", sort: "rtt", class: "number", show: (flow) => format.time(flow.rtt_us) },
	{ key: "rate", title: "Rate", sort: "rate", class: "number", show: (flow) => format.rate(flow.rate_bps) },
	{ key: "delivered", title: "Delivered", sort: "delivered", class: "number", show: (flow) => format.bytes(flow.acknowledged_bytes) },
	{ key: "resent", title: "Sent again", sort: "retransmitted", class: "number", show: (flow) => format.bytes(flow.retransmitted_bytes) },
];

function state(flow: Flow): string {
	if (flow.idle) return "idle";
	if (!flow.exit) return format.words(flow.state);
	const reason = format.words(flow.exit.reason);
	return flow.state === "ended" ? `ended; ${reason}` : reason;
}

type Line = { flow: number } | { group: string; flows: number };

export function flowsView(main: HTMLElement, parameters: URLSearchParams, heard: (attached: Attached) => void): () => void {
	/** Those of the window of the list that is told, by id; and the window itself. */
	const flows = new Map<string, Flow>();
	let order: string[] = [];
	let first = 0;
	let listed: (Listed & { groups: NonNullable<Listed["groups"]> }) | null = null;
	let chosen: string | null = null;
	/** Place in the list of a flow to be chosen as soon as it is told. */
	let wanted: number | null = null;
	let close = (): void => {};
	const wish = {
		filter: parameters.get("filter") ?? "",
		group: parameters.get("group") ?? "",
		sort: parameters.get("sort") ?? "delivered",
		reverse: parameters.get("reverse") === "true",
	};

	const search = h("input", {
		type: "search",
		id: "search",
		placeholder: "dst 198.51.100.0/24 and dport = :443",
		spellcheck: "false",
		autocomplete: "off",
		value: wish.filter,
		"aria-describedby": "wrong",
	});
	const wrong = h("p", { id: "wrong", class: "wrong", role: "alert" });
	const group = h(
		"select",
		{ id: "group", change: () => ask({ group: group.value }) },
		h("option", { value: "" }, "nothing"),
		h("option", { value: "algorithm" }, "algorithm"),
		h("option", { value: "reason" }, "exit reason"),
		h("option", { value: "prefix" }, "network"),
	);
	group.value = wish.group;
	const summary = h("p", { class: "summary", role: "status" }, "Waiting for flows …");
	const heads = COLUMNS.map((column) =>
		h(
			"div",
			{ role: "columnheader", class: `cell ${column.key} ${column.class ?? ""}` },
			h("button", { type: "button", click: () => sortBy(column) }, column.title),
		),
	);
	const body = h("div", { class: "body", role: "rowgroup" });
	const empty = h("p", { class: "empty" });
	const scroller = h(
		"div",
		{ class: "scroller", tabindex: "0", "aria-label": "Flows; arrow keys choose, Enter opens" },
		h("div", { class: "table", role: "table", "aria-label": "Flows" }, h("div", { class: "row head", role: "row" }, ...heads), body),
		empty,
	);
	const form = h(
		"form",
		{
			class: "search",
			role: "search",
			submit: (event: SubmitEvent) => {
				event.preventDefault();
				ask({ filter: search.value.trim() });
			},
		},
		h("label", { for: "search" }, "Filter"),
		search,
		h("label", { for: "group" }, "Group by"),
		group,
	);
	fill(main, h("h1", { class: "hidden" }, "All flows"), form, wrong, summary, scroller);

	let typing = 0;
	search.addEventListener("input", () => {
		window.clearTimeout(typing);
		typing = window.setTimeout(() => ask({ filter: search.value.trim() }), 400);
	});

	function sortBy(column: Column): void {
		if (!column.sort) return;
		ask(wish.sort === column.sort ? { reverse: !wish.reverse } : { sort: column.sort, reverse: false });
	}

	/** Changes the wish, once the server has understood it. */
	async function ask(change: Partial<typeof wish>): Promise<void> {
		const next = { ...wish, ...change };
		const query = queryOf(next);
		if (next.filter !== wish.filter) {
			try {
				await get(`/api/flows?${new URLSearchParams({ filter: next.filter, limit: "1", ...(recording() ? { recording: recording() } : {}) })}`);
			} catch (error) {
				text(wrong, (error as Error).message);
				search.setAttribute("aria-invalid", "true");
				return;
			}
		}
		text(wrong, "");
		search.removeAttribute("aria-invalid");
		Object.assign(wish, next);
		history.replaceState(null, "", address("flows", query));
		first = 0;
		scroller.scrollTop = 0;
		listen();
	}

	function queryOf(from: typeof wish): URLSearchParams {
		const query = new URLSearchParams({ sort: from.sort });
		if (from.filter) query.set("filter", from.filter);
		if (from.group) query.set("group", from.group);
		if (from.reverse) query.set("reverse", "true");
		return query;
	}

	function listen(): void {
		close();
		heads.forEach((head, number) => {
			const ours = COLUMNS[number]?.sort === wish.sort;
			const descending = (COLUMNS[number]?.class?.includes("number") ?? false) !== wish.reverse;
			if (ours) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
			else head.removeAttribute("aria-sort");
		});
		const query = queryOf(wish);
		query.set("limit", String(WINDOW));
		const offset = first;
		if (offset) query.set("offset", String(offset));
		close = live(query, { flows: (news) => take(news), attached: heard });
	}

	function take(news: Listed): void {
		if (news.full) flows.clear();
		for (const flow of news.flows) flows.set(String(flow.flow), flow);
		if (news.order) {
			order = news.order;
			const there = new Set(order);
			for (const id of flows.keys()) if (!there.has(id)) flows.delete(id);
		}
		listed = { ...news, groups: news.groups ?? listed?.groups ?? [] };
		if (wanted != null && order[wanted - first]) {
			chosen = order[wanted - first] ?? null;
			wanted = null;
		}
		schedule();
	}

	/** How many lines there are: flows, and a line before each group. */
	const length = (): number => (listed ? listed.matched + listed.groups.length : 0);

	function lineAt(number: number): Line | null {
		let before = 0;
		for (const [lines, group] of (listed?.groups ?? []).entries()) {
			const head = before + lines;
			if (number === head) return { group: group.name, flows: group.flows };
			before += group.flows;
			if (number <= head + group.flows) return { flow: number - lines - 1 };
		}
		return listed?.groups.length ? null : { flow: number };
	}

	/** The line of a flow's place in the list. */
	function lineOf(place: number): number {
		let before = 0;
		for (const [lines, group] of (listed?.groups ?? []).entries()) {
			before += group.flows;
			if (place < before) return place + lines + 1;
		}
		return place;
	}

	/** What is seen may have left the middle of what is told. */
	let moving = 0;
	function follow(from: number, to: number): void {
		const most = Math.max(0, (listed?.matched ?? 0) - WINDOW);
		if (moving || (from >= first && to <= first + WINDOW) || (first === 0 && to <= WINDOW)) return;
		const next = Math.min(Math.max(0, Math.floor((from + to - WINDOW) / 2)), most);
		if (next === first) return;
		moving = window.setTimeout(() => {
			moving = 0;
			const seen = places();
			first = Math.min(Math.max(0, Math.floor((seen[0] + seen[1] - WINDOW) / 2)), most);
			listen();
		}, SCROLL);
	}

	/** Places of the first and of the flow after the last that are seen. */
	function places(): [number, number] {
		const top = Math.floor(scroller.scrollTop / ROW);
		const bottom = Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW);
		const groups = listed?.groups.length ?? 0;
		const place = (number: number): number => {
			const line = lineAt(Math.min(Math.max(number, 0), Math.max(length() - 1, 0)));
			return line && "flow" in line ? line.flow : Math.max(0, number - groups);
		};
		return [place(top), place(bottom) + 1];
	}

	let scheduled = 0;
	function schedule(): void {
		if (!scheduled) scheduled = requestAnimationFrame(draw);
	}

	const pool: HTMLElement[] = [];
	function rowElement(number: number): HTMLElement {
		let row = pool[number];
		if (!row) {
			row = h("div", { class: "row", role: "row" });
			for (const column of COLUMNS) {
				const cell = h("div", { role: "cell", class: `cell ${column.key} ${column.class ?? ""}` });
				if (column.key === "remote") cell.append(h("a", { tabindex: "-1" }));
				row.append(cell);
			}
			row.append(h("div", { role: "cell", class: "cell group" }));
			row.addEventListener("click", () => open(row?.dataset["flow"] ?? null));
			pool[number] = row;
		}
		return row;
	}

	function draw(): void {
		scheduled = 0;
		if (!listed) return;
		const lost = listed.lost_events ? `; ${format.count(listed.lost_events)} events came too fast and are missing` : "";
		const some = listed.matched === listed.total ? "" : ` of ${format.count(listed.total)}`;
		text(summary, `${format.count(listed.matched)}${some} flow${listed.total === 1 ? "" : "s"}${lost}`);
		text(
			empty,
			listed.matched > 0
				? ""
				: listed.total > 0
					? "No flow passes this filter."
					: !isLive()
					? "Nothing is open. Drop a recording, a result of the lab or a report here, or use Open."
					: "No flow yet. Attach an algorithm, and let a connection use it: onramp attach search, then iperf3 -C onramp_search. Or drop a recording here.",
		);
		const from = Math.max(0, Math.floor(scroller.scrollTop / ROW) - MORE);
		const to = Math.min(length(), Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW) + MORE);
		body.style.height = `${length() * ROW}px`;
		const rows: HTMLElement[] = [];
		for (let number = from; number < to; number += 1) {
			const line = lineAt(number);
			if (!line) continue;
			const row = rowElement(number - from);
			row.style.transform = `translateY(${number * ROW}px)`;
			row.setAttribute("aria-rowindex", String(number + 2));
			show(row, line);
			rows.push(row);
		}
		if (rows.length !== body.children.length || rows.some((row, number) => body.children[number] !== row)) body.replaceChildren(...rows);
		scroller.querySelector(".table")?.setAttribute("aria-rowcount", String(length() + 1));
		follow(...places());
	}

	function show(row: HTMLElement, line: Line): void {
		const cells = row.children;
		const groupCell = cells[COLUMNS.length];
		if ("group" in line) {
			row.className = "row grouped";
			delete row.dataset["flow"];
			if (groupCell) text(groupCell, `${format.words(line.group)} · ${format.count(line.flows)}`);
			return;
		}
		const id = order[line.flow - first];
		const flow = id == null ? null : flows.get(id);
		if (id == null || !flow) {
			row.className = "row flow waiting";
			delete row.dataset["flow"];
			COLUMNS.forEach((_, number) => {
				const cell = cells[number];
				if (cell) text(cell.firstElementChild ?? cell, number === 0 ? "…" : "");
			});
			return;
		}
		row.className = `row flow ${flow.state} ${flow.exit ? `by-${flow.exit.reason}` : ""} ${id === chosen ? "chosen" : ""}`;
		row.dataset["flow"] = id;
		COLUMNS.forEach((column, number) => {
			const cell = cells[number];
			if (!cell) return;
			const link = cell.firstElementChild;
			if (link) link.setAttribute("href", address(`flow/${id}`));
			text(link ?? cell, column.show(flow));
		});
	}

	function open(id: string | null): void {
		if (id) location.hash = address(`flow/${id}`);
	}

	function move(by: number): void {
		if (!listed?.matched) return;
		const known = chosen == null ? -1 : order.indexOf(chosen);
		const at = wanted ?? (known >= 0 ? first + known : by > 0 ? places()[0] - 1 : places()[1]);
		const place = Math.min(Math.max(at + by, 0), listed.matched - 1);
		const there = order[place - first];
		chosen = there ?? null;
		wanted = there == null ? place : null;
		const top = lineOf(place) * ROW;
		if (top < scroller.scrollTop) scroller.scrollTop = top;
		const bottom = top + 2 * ROW - scroller.clientHeight;
		if (bottom > scroller.scrollTop) scroller.scrollTop = bottom;
		schedule();
	}

	function key(event: KeyboardEvent): void {
		const typed = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
		if (event.ctrlKey || event.metaKey || event.altKey) return;
		if (typed) {
			if (event.key === "Escape") {
				search.value = "";
				search.blur();
				void ask({ filter: "" });
			}
			return;
		}
		const page = Math.floor(scroller.clientHeight / ROW) - 2;
		const moves: Record<string, number> = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 };
		const by = moves[event.key];
		if (by != null) {
			event.preventDefault();
			move(by);
		} else if (event.key === "Enter" && chosen && !(event.target instanceof HTMLButtonElement || event.target instanceof HTMLAnchorElement)) {
			open(chosen);
		} else if (event.key === "/") {
			event.preventDefault();
			search.focus();
			search.select();
		}
	}

	scroller.addEventListener("scroll", schedule, { passive: true });
	const observer = new ResizeObserver(schedule);
	observer.observe(scroller);
	document.addEventListener("keydown", key);
	listen();
	return () => {
		close();
		observer.disconnect();
		document.removeEventListener("keydown", key);
		cancelAnimationFrame(scheduled);
		window.clearTimeout(typing);
		window.clearTimeout(moving);
	};
}
