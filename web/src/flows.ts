// All flows: a list of any length, of which only what is seen is in the document.

import { apply, type Attached, type Flow, get, type Listed, live } from "./api";
import { fill, h, text } from "./dom";
import * as format from "./format";

const ROW = 40;
/** Rows beyond what is seen. */
const MORE = 8;
const LIMIT = 2000;

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
	{ key: "exit", title: "Exit / BDP", sort: "exit_bdp", class: "number", show: (flow) => format.ratio(format.overBdp(flow)) },
	{ key: "cwnd", title: "cwnd", sort: "cwnd", class: "number", show: (flow) => format.segments(flow.cwnd_segments) },
	{ key: "rtt", title: "RTT", sort: "rtt", class: "number", show: (flow) => format.time(flow.rtt_us) },
	{ key: "rate", title: "Rate", sort: "rate", class: "number", show: (flow) => format.rate(flow.rate_bps) },
	{ key: "delivered", title: "Delivered", sort: "delivered", class: "number", show: (flow) => format.bytes(flow.acknowledged_bytes) },
	{ key: "resent", title: "Sent again", sort: "retransmitted", class: "number", show: (flow) => format.bytes(flow.retransmitted_bytes) },
];

function state(flow: Flow): string {
	if (!flow.exit) return format.words(flow.state);
	const reason = format.words(flow.exit.reason);
	return flow.state === "ended" ? `ended; ${reason}` : reason;
}

type Line = { flow: string } | { group: string; flows: number };

export function flowsView(main: HTMLElement, parameters: URLSearchParams, heard: (attached: Attached) => void): () => void {
	const flows = new Map<string, Flow>();
	let order: string[] = [];
	let listed: Listed | null = null;
	let lines: Line[] = [];
	let chosen: string | null = null;
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
				await get(`/api/flows?${new URLSearchParams({ filter: next.filter, limit: "1" })}`);
			} catch (error) {
				text(wrong, (error as Error).message);
				search.setAttribute("aria-invalid", "true");
				return;
			}
		}
		text(wrong, "");
		search.removeAttribute("aria-invalid");
		Object.assign(wish, next);
		query.delete("limit");
		history.replaceState(null, "", `#/flows?${query}`);
		listen();
	}

	function queryOf(from: typeof wish): URLSearchParams {
		const query = new URLSearchParams({ sort: from.sort, limit: String(LIMIT) });
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
		close = live(queryOf(wish), { flows: take, attached: heard });
	}

	function take(news: Listed): void {
		apply(flows, news);
		order = news.order ?? order;
		listed = news;
		arrange(news);
		schedule();
	}

	function arrange(news: Listed): void {
		lines = [];
		// Without groups all flows are of one that has no line of its own.
		let next = 0;
		for (const group of news.groups.length ? news.groups : [{ name: "", flows: 0, listed: order.length }]) {
			if (group.name && group.listed) lines.push({ group: group.name, flows: group.flows });
			for (const id of order.slice(next, next + group.listed)) if (flows.has(id)) lines.push({ flow: id });
			next += group.listed;
		}
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
		const shown = order.length < listed.matched ? `, the first ${format.count(order.length)} of them here: a filter shows others` : "";
		const lost = listed.lost_events ? `; ${format.count(listed.lost_events)} events came too fast and are missing` : "";
		const some = listed.matched === listed.total ? "" : ` of ${format.count(listed.total)}`;
		text(summary, `${format.count(listed.matched)}${some} flow${listed.total === 1 ? "" : "s"}${shown}${lost}`);
		text(
			empty,
			lines.length > 0
				? ""
				: listed.total > 0
					? "No flow passes this filter."
					: "No flow yet. Attach an algorithm, and let a connection use it: onramp attach search, then iperf3 -C onramp_search.",
		);
		const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - MORE);
		const last = Math.min(lines.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW) + MORE);
		body.style.height = `${lines.length * ROW}px`;
		const rows: HTMLElement[] = [];
		for (let number = first; number < last; number += 1) {
			const line = lines[number];
			if (!line) continue;
			const row = rowElement(number - first);
			row.style.transform = `translateY(${number * ROW}px)`;
			row.setAttribute("aria-rowindex", String(number + 2));
			show(row, line);
			rows.push(row);
		}
		if (rows.length !== body.children.length || rows.some((row, number) => body.children[number] !== row)) body.replaceChildren(...rows);
		scroller.querySelector(".table")?.setAttribute("aria-rowcount", String(lines.length + 1));
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
		const flow = flows.get(line.flow);
		if (!flow) return;
		row.className = `row flow ${flow.state} ${flow.exit ? `by-${flow.exit.reason}` : ""} ${line.flow === chosen ? "chosen" : ""}`;
		row.dataset["flow"] = line.flow;
		COLUMNS.forEach((column, number) => {
			const cell = cells[number];
			if (!cell) return;
			const link = cell.firstElementChild;
			if (link) link.setAttribute("href", `#/flow/${line.flow}`);
			text(link ?? cell, column.show(flow));
		});
	}

	function open(id: string | null): void {
		if (id) location.hash = `#/flow/${id}`;
	}

	function move(by: number): void {
		const ids = lines.flatMap((line) => ("flow" in line ? [line.flow] : []));
		const at = chosen ? ids.indexOf(chosen) : by > 0 ? -1 : ids.length;
		chosen = ids[Math.min(Math.max(at + by, 0), ids.length - 1)] ?? null;
		const line = lines.findIndex((one) => "flow" in one && one.flow === chosen);
		const top = line * ROW;
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
	};
}
