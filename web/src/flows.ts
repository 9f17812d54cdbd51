// All flows: a list of any length, of which only what is seen is in the document.

import { get, live } from "./api";
import { ControlsTable, controlsText } from "./controls";
import { fill, h, hasModifier, isTyped, text } from "./dom";
import * as format from "./format";
import type { Flow, LiveFlows, Others, Status } from "./schema";
import { address, isLive, recording } from "./source";

const ROW = 40;
/** Rows beyond what is seen. */
const MORE = 8;
/** Flows that are requested at once: the visible ones are somewhere in the middle. */
const WINDOW = 200;
/** Milliseconds between two windows, while the user scrolls. */
const SCROLL = 120;

interface Column {
	key: string;
	title: string;
	/** What it is, where its title is short. */
	long?: string;
	sort?: string;
	class?: string;
	show(flow: Flow): string;
}

const COLUMNS: Column[] = [
	{
		key: "remote",
		title: "Remote",
		sort: "remote",
		class: "wide",
		show: (flow) => format.end(flow.remote_address, flow.remote_port),
	},
	{
		key: "local",
		title: "Local",
		sort: "local",
		class: "wide",
		show: (flow) => format.end(flow.local_address, flow.local_port),
	},
	{ key: "algorithm", title: "Algorithm", sort: "algorithm", show: (flow) => flow.algorithm },
	{ key: "state", title: "State", sort: "state", show: (flow) => state(flow) },
	{ key: "exit", title: "Exit / BDP", sort: "exit_bdp", class: "number", show: (flow) => format.exitOverBdp(flow) },
	{
		key: "lost",
		title: "Lost",
		long: "Time lost by the exit: the worst come first",
		sort: "lost",
		class: "number",
		show: (flow) => format.lost(flow),
	},
	{ key: "cwnd", title: "cwnd", sort: "cwnd", class: "number", show: (flow) => format.segments(flow.cwnd_segments) },
	{ key: "rtt", title: "RTT", sort: "rtt", class: "number", show: (flow) => format.time(flow.rtt_us) },
	{ key: "rate", title: "Rate", sort: "rate", class: "number", show: (flow) => format.rate(flow.rate_bps) },
	{
		key: "delivered",
		title: "Delivered",
		sort: "delivered",
		class: "number",
		show: (flow) => format.bytes(flow.acknowledged_bytes),
	},
	{
		key: "resent",
		title: "Retransmitted",
		sort: "retransmitted",
		class: "number",
		show: (flow) => format.bytes(flow.retransmitted_bytes),
	},
];

function state(flow: Flow): string {
	if (flow.idle) return "idle";
	if (!flow.exit) return format.words(flow.state);
	const reason = format.words(flow.exit.reason);
	return flow.state === "ended" ? `ended; ${reason}` : reason;
}

type Line = { flow: number } | { group: string; flows: number };

/** What is asked of the server. */
interface Request {
	filter: string;
	group: string;
	sort: string;
	reverse: boolean;
}

const NOTHING_LIVE =
	"No flow yet. Attach an algorithm, and let a connection use it: onramp attach search, then " +
	"iperf3 -C onramp_search. Or drop a recording here.";
const NOTHING_OPEN = "Nothing is open. Drop a recording, a result of the lab or a report here, or use Open.";

const cellClass = (column: Column): string => `cell ${column.key} ${column.class ?? ""}`;

export function flowsView(
	main: HTMLElement,
	parameters: URLSearchParams,
	onAttached: (attached: Status) => void,
): () => void {
	const view = new FlowsView(main, parameters, onAttached);
	return () => view.leave();
}

class FlowsView {
	/** Those of the requested window of the list, by id; and the window itself. */
	private readonly flows = new Map<string, Flow>();
	private order: string[] = [];
	private first = 0;
	private listed: (LiveFlows & { groups: NonNullable<LiveFlows["groups"]> }) | null = null;
	/** Flows of other controls, where nothing is attached. */
	private others: Others | null = null;
	private chosen: string | null = null;
	/** Place in the list of a flow to be chosen as soon as it arrives. */
	private wanted: number | null = null;
	private readonly request: Request;
	private close = (): void => {};
	private typing = 0;
	private moving = 0;
	private scheduled = 0;

	private readonly search: HTMLInputElement;
	private readonly wrong = h("p", { id: "wrong", class: "wrong", role: "alert" });
	private readonly summary = h("p", { class: "summary", role: "status" }, "Waiting for flows …");
	private readonly heads: HTMLElement[];
	private readonly rows: HTMLElement;
	private readonly body = h("div", { class: "body", role: "rowgroup" });
	private readonly empty = h("p", { class: "empty" });
	private readonly controls = new ControlsTable();
	private readonly form: HTMLElement;
	private readonly scroller: HTMLElement;
	private readonly pool: HTMLElement[] = [];
	private readonly observer = new ResizeObserver(() => this.schedule());
	private readonly onKey = (event: KeyboardEvent): void => this.key(event);

	constructor(
		main: HTMLElement,
		parameters: URLSearchParams,
		private readonly onAttached: (attached: Status) => void,
	) {
		this.request = {
			filter: parameters.get("filter") ?? "",
			group: parameters.get("group") ?? "",
			sort: parameters.get("sort") ?? "delivered",
			reverse: parameters.get("reverse") === "true",
		};
		this.search = this.searchInput();
		this.heads = COLUMNS.map((column) => this.columnHead(column));
		this.form = this.searchForm();
		const head = h("div", { class: "row head", role: "row" }, ...this.heads);
		this.rows = h("div", { class: "table", role: "table", "aria-label": "Flows" }, head, this.body);
		this.scroller = this.table();
		fill(main, h("h1", { class: "hidden" }, "All flows"), this.form, this.wrong, this.summary, this.scroller);
		this.observer.observe(this.scroller);
		document.addEventListener("keydown", this.onKey);
		this.listen();
	}

	leave(): void {
		this.close();
		this.observer.disconnect();
		document.removeEventListener("keydown", this.onKey);
		cancelAnimationFrame(this.scheduled);
		window.clearTimeout(this.typing);
		window.clearTimeout(this.moving);
	}

	private searchInput(): HTMLInputElement {
		return h("input", {
			type: "search",
			id: "search",
			placeholder: "dst 198.51.100.0/24 and dport = :443",
			spellcheck: "false",
			autocomplete: "off",
			value: this.request.filter,
			"aria-describedby": "wrong",
			input: () => {
				window.clearTimeout(this.typing);
				this.typing = window.setTimeout(() => this.ask({ filter: this.search.value.trim() }), 400);
			},
		});
	}

	private searchForm(): HTMLElement {
		const group = h(
			"select",
			{ id: "group", change: () => this.ask({ group: group.value }) },
			h("option", { value: "" }, "nothing"),
			h("option", { value: "algorithm" }, "algorithm"),
			h("option", { value: "reason" }, "exit reason"),
			h("option", { value: "prefix" }, "network"),
		);
		group.value = this.request.group;
		const submit = (event: SubmitEvent): void => {
			event.preventDefault();
			void this.ask({ filter: this.search.value.trim() });
		};
		return h(
			"form",
			{ class: "search", role: "search", submit },
			h("label", { for: "search" }, "Filter"),
			this.search,
			h("label", { for: "group" }, "Group by"),
			group,
		);
	}

	private columnHead(column: Column): HTMLElement {
		const click = (): void => this.sortBy(column);
		const button = h("button", { type: "button", title: column.long, click }, column.title);
		return h("div", { role: "columnheader", class: cellClass(column) }, button);
	}

	private table(): HTMLElement {
		const scroller = h(
			"div",
			{ class: "scroller", tabindex: "0", "aria-label": "Flows; arrow keys choose, Enter opens" },
			this.rows,
			this.empty,
			this.controls.element,
		);
		scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
		return scroller;
	}

	private sortBy(column: Column): void {
		if (!column.sort) return;
		const again = this.request.sort === column.sort;
		void this.ask(again ? { reverse: !this.request.reverse } : { sort: column.sort, reverse: false });
	}

	/** Changes the request, once the server has understood it. */
	private async ask(change: Partial<Request>): Promise<void> {
		const next = { ...this.request, ...change };
		if (next.filter !== this.request.filter) {
			const query = new URLSearchParams({ filter: next.filter, limit: "1" });
			if (recording()) query.set("recording", recording());
			try {
				await get(`/api/flows?${query}`);
			} catch (error) {
				text(this.wrong, (error as Error).message);
				this.search.setAttribute("aria-invalid", "true");
				return;
			}
		}
		text(this.wrong, "");
		this.search.removeAttribute("aria-invalid");
		Object.assign(this.request, next);
		history.replaceState(null, "", address("flows", this.query()));
		this.first = 0;
		this.scroller.scrollTop = 0;
		this.listen();
	}

	private query(): URLSearchParams {
		const query = new URLSearchParams({ sort: this.request.sort });
		if (this.request.filter) query.set("filter", this.request.filter);
		if (this.request.group) query.set("group", this.request.group);
		if (this.request.reverse) query.set("reverse", "true");
		return query;
	}

	private listen(): void {
		this.close();
		this.showSort();
		const query = this.query();
		query.set("limit", String(WINDOW));
		if (this.first) query.set("offset", String(this.first));
		this.close = live(query, {
			flows: (news) => this.take(news),
			attached: (status) => {
				this.onAttached(status);
				this.others = status.others;
				this.schedule();
			},
		});
	}

	private showSort(): void {
		this.heads.forEach((head, number) => {
			const ours = COLUMNS[number]?.sort === this.request.sort;
			const descending = (COLUMNS[number]?.class?.includes("number") ?? false) !== this.request.reverse;
			if (ours) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
			else head.removeAttribute("aria-sort");
		});
	}

	private take(news: LiveFlows): void {
		if (news.full) this.flows.clear();
		for (const flow of news.flows) this.flows.set(String(flow.flow), flow);
		if (news.order) {
			this.order = news.order;
			const there = new Set(this.order);
			for (const id of this.flows.keys()) if (!there.has(id)) this.flows.delete(id);
		}
		this.listed = { ...news, groups: news.groups ?? this.listed?.groups ?? [] };
		if (this.wanted != null && this.order[this.wanted - this.first]) {
			this.chosen = this.order[this.wanted - this.first] ?? null;
			this.wanted = null;
		}
		this.schedule();
	}

	/** How many lines there are: flows, and a line before each group. */
	private length(): number {
		return this.listed ? this.listed.matched + this.listed.groups.length : 0;
	}

	private lineAt(number: number): Line | null {
		let before = 0;
		for (const [lines, group] of (this.listed?.groups ?? []).entries()) {
			const head = before + lines;
			if (number === head) return { group: group.name, flows: group.flows };
			before += group.flows;
			if (number <= head + group.flows) return { flow: number - lines - 1 };
		}
		return this.listed?.groups.length ? null : { flow: number };
	}

	/** The line of a flow's place in the list. */
	private lineOf(place: number): number {
		let before = 0;
		for (const [lines, group] of (this.listed?.groups ?? []).entries()) {
			before += group.flows;
			if (place < before) return place + lines + 1;
		}
		return place;
	}

	/** The visible flows may have left the middle of the requested ones. */
	private follow(from: number, to: number): void {
		const { first } = this;
		if (this.moving || (from >= first && to <= first + WINDOW) || (first === 0 && to <= WINDOW)) return;
		const most = Math.max(0, (this.listed?.matched ?? 0) - WINDOW);
		const around = (from: number, to: number): number =>
			Math.min(Math.max(0, Math.floor((from + to - WINDOW) / 2)), most);
		if (around(from, to) === first) return;
		this.moving = window.setTimeout(() => {
			this.moving = 0;
			this.first = around(...this.places());
			this.listen();
		}, SCROLL);
	}

	/** Places of the first and of the flow after the last that are seen. */
	private places(): [number, number] {
		const top = Math.floor(this.scroller.scrollTop / ROW);
		const bottom = Math.ceil((this.scroller.scrollTop + this.scroller.clientHeight) / ROW);
		const groups = this.listed?.groups.length ?? 0;
		const place = (number: number): number => {
			const line = this.lineAt(Math.min(Math.max(number, 0), Math.max(this.length() - 1, 0)));
			return line && "flow" in line ? line.flow : Math.max(0, number - groups);
		};
		return [place(top), place(bottom) + 1];
	}

	private schedule(): void {
		if (!this.scheduled) this.scheduled = requestAnimationFrame(() => this.draw());
	}

	private draw(): void {
		this.scheduled = 0;
		if (!this.listed) return;
		const others = this.listed.total === 0 && isLive() && !recording() ? this.others : null;
		this.form.hidden = others != null;
		this.rows.hidden = others != null;
		this.controls.element.hidden = !others?.flows.length;
		if (others) {
			this.controls.draw(others);
			text(this.summary, controlsText(others));
			text(this.empty, others.flows.length > 0 ? "" : NOTHING_LIVE);
			return;
		}
		this.drawSummary(this.listed);
		this.drawRows();
		this.rows.setAttribute("aria-rowcount", String(this.length() + 1));
		this.follow(...this.places());
	}

	private drawSummary({ matched, total, lost_events: events }: LiveFlows): void {
		const lost = events ? `; ${format.count(events)} events came too fast and are missing` : "";
		const some = matched === total ? "" : ` of ${format.count(total)}`;
		text(this.summary, `${format.count(matched)}${some} flow${total === 1 ? "" : "s"}${lost}`);
		const nothing = isLive() ? NOTHING_LIVE : NOTHING_OPEN;
		text(this.empty, matched > 0 ? "" : total > 0 ? "No flow passes this filter." : nothing);
	}

	private drawRows(): void {
		const { body, scroller } = this;
		const from = Math.max(0, Math.floor(scroller.scrollTop / ROW) - MORE);
		const bottom = Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW);
		const to = Math.min(this.length(), bottom + MORE);
		body.style.height = `${this.length() * ROW}px`;
		const rows: HTMLElement[] = [];
		for (let number = from; number < to; number += 1) {
			const line = this.lineAt(number);
			if (!line) continue;
			const row = this.rowElement(number - from);
			row.style.transform = `translateY(${number * ROW}px)`;
			row.setAttribute("aria-rowindex", String(number + 2));
			this.show(row, line);
			rows.push(row);
		}
		const same = rows.length === body.children.length && rows.every((row, number) => body.children[number] === row);
		if (!same) body.replaceChildren(...rows);
	}

	private rowElement(number: number): HTMLElement {
		let row = this.pool[number];
		if (!row) {
			row = h("div", { class: "row", role: "row" });
			for (const column of COLUMNS) {
				const cell = h("div", { role: "cell", class: cellClass(column) });
				if (column.key === "remote") cell.append(h("a", { tabindex: "-1" }));
				row.append(cell);
			}
			row.append(h("div", { role: "cell", class: "cell group" }));
			row.addEventListener("click", () => this.open(row?.dataset.flow ?? null));
			this.pool[number] = row;
		}
		return row;
	}

	private show(row: HTMLElement, line: Line): void {
		if ("group" in line) {
			row.className = "row grouped";
			delete row.dataset.flow;
			const cell = row.children[COLUMNS.length];
			if (cell) text(cell, `${format.words(line.group)} · ${format.count(line.flows)}`);
			return;
		}
		const id = this.order[line.flow - this.first];
		const flow = id == null ? null : this.flows.get(id);
		if (id == null || !flow) this.showWaiting(row);
		else this.showFlow(row, id, flow);
	}

	/** A flow that the server has not sent yet. */
	private showWaiting(row: HTMLElement): void {
		row.className = "row flow waiting";
		delete row.dataset.flow;
		COLUMNS.forEach((_, number) => {
			const cell = row.children[number];
			if (cell) text(cell.firstElementChild ?? cell, number === 0 ? "…" : "");
		});
	}

	private showFlow(row: HTMLElement, id: string, flow: Flow): void {
		const reason = flow.exit ? `by-${flow.exit.reason}` : "";
		row.className = `row flow ${flow.state} ${reason} ${id === this.chosen ? "chosen" : ""}`;
		row.dataset.flow = id;
		COLUMNS.forEach((column, number) => {
			const cell = row.children[number];
			if (!cell) return;
			const link = cell.firstElementChild;
			if (link) link.setAttribute("href", address(`flow/${id}`));
			text(link ?? cell, column.show(flow));
		});
	}

	private open(id: string | null): void {
		if (id) location.hash = address(`flow/${id}`);
	}

	/** Chooses the flow so many places further. */
	private move(by: number): void {
		if (!this.listed?.matched) return;
		const known = this.chosen == null ? -1 : this.order.indexOf(this.chosen);
		const seen = (): number => (by > 0 ? this.places()[0] - 1 : this.places()[1]);
		const at = this.wanted ?? (known >= 0 ? this.first + known : seen());
		const place = Math.min(Math.max(at + by, 0), this.listed.matched - 1);
		const there = this.order[place - this.first];
		this.chosen = there ?? null;
		this.wanted = there == null ? place : null;
		const top = this.lineOf(place) * ROW;
		if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
		const bottom = top + 2 * ROW - this.scroller.clientHeight;
		if (bottom > this.scroller.scrollTop) this.scroller.scrollTop = bottom;
		this.schedule();
	}

	private key(event: KeyboardEvent): void {
		const { target } = event;
		if (hasModifier(event)) return;
		if (isTyped(event)) {
			if (event.key === "Escape") this.clearFilter();
			return;
		}
		const by = this.step(event.key);
		const activates = target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement;
		if (by != null) {
			event.preventDefault();
			this.move(by);
		} else if (event.key === "Enter" && this.chosen && !activates) {
			this.open(this.chosen);
		} else if (event.key === "/") {
			event.preventDefault();
			this.search.focus();
			this.search.select();
		}
	}

	/** How far a key moves the choice; `undefined`: it is none that does. */
	private step(key: string): number | undefined {
		const page = Math.floor(this.scroller.clientHeight / ROW) - 2;
		const steps: Record<string, number> = {
			ArrowDown: 1,
			j: 1,
			ArrowUp: -1,
			k: -1,
			PageDown: page,
			PageUp: -page,
			Home: -1e9,
			End: 1e9,
		};
		return steps[key];
	}

	private clearFilter(): void {
		this.search.value = "";
		this.search.blur();
		void this.ask({ filter: "" });
	}
}
