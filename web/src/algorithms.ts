// Attached algorithms: counts, parameters tuned live, and consumers of telemetry.

import { get, live, tune } from "./api";
import { armsView } from "./arms";
import { fill, h, say, text } from "./dom";
import * as format from "./format";
import type { Attached, Parameter, ParameterSet, Status, Tuned } from "./schema";
import { said, token } from "./token";

/** Previous values, the newest last. */
interface Undo {
	algorithm: string;
	profile: string;
	settings: string[];
}
const undos: Undo[] = [];

export function algorithmsView(
	main: HTMLElement,
	writable: boolean,
	onAttached: (attached: Status) => void,
): () => void {
	let declarations: Map<string, { about: string; parameters: Parameter[] }> | null = null;
	let attached: Status | null = null;
	const sheets = new Map<string, Sheet>();
	const message = h("div", { class: "message", role: "status" });
	const cards = h("div", { class: "cards" });
	const listeners = h("section", { class: "card" });
	const selection = h("section", { class: "card" });
	fill(main, h("h1", {}, "Attached algorithms"), message, cards, h("div", { class: "charts" }, selection, listeners));

	void get<{ algorithms: { name: string; about: string; parameters: Parameter[] }[] }>("/api/list").then((list) => {
		declarations = new Map(list.algorithms.map((one) => [one.name, one]));
		draw();
	});

	function draw(): void {
		if (!attached || !declarations) return;
		const wanted = new Map<string, [Attached, ParameterSet]>();
		const there = attached.algorithms.filter((row) => row.state === "attached");
		for (const row of there)
			for (const set of row.parameter_sets) wanted.set(`${row.algorithm}/${set.profile}`, [row, set]);
		for (const id of sheets.keys()) if (!wanted.has(id)) sheets.delete(id);
		for (const [id, [row, set]] of wanted) {
			let sheet = sheets.get(id);
			if (!sheet) {
				sheet = new Sheet(
					row,
					set,
					declarations.get(row.algorithm)?.parameters ?? [],
					declarations.get(row.algorithm)?.about ?? "",
					writable,
					done,
				);
				sheets.set(id, sheet);
			}
			sheet.show(row, set);
		}
		// Of those that are not simply attached there is nothing but why.
		const others = attached.algorithms.filter((row) => row.state !== "attached");
		const standing = others.map((row) =>
			h(
				"section",
				{ class: "card", "data-algorithm": row.algorithm },
				h("h2", {}, row.algorithm, h("span", { class: "chip" }, format.words(row.state))),
				h("p", { class: "wrong" }, row.explanation ?? ""),
			),
		);
		const elements = [...[...sheets.values()].map((sheet) => sheet.element), ...standing];
		if (elements.length === 0) fill(cards, h("p", { class: "empty" }, "Nothing is attached: onramp attach search"));
		else if (
			elements.some((element, number) => cards.children[number] !== element) ||
			cards.children.length !== elements.length
		)
			fill(cards, ...elements);
		const rules = attached.selection;
		fill(
			selection,
			h(
				"h2",
				{},
				"Who gets what",
				rules &&
					h(
						"span",
						{ class: "chip" },
						rules.active
							? `${format.count(rules.rules)} rule${rules.rules === 1 ? "" : "s"}`
							: "not in use",
					),
			),
			!rules
				? h(
						"p",
						{ class: "quiet" },
						"There are no rules: connections have what their application, route or network " +
							"namespace gives them. onramp select add makes one.",
					)
				: rules.unknown
					? h("p", { class: "quiet" }, `The rules cannot be read: ${rules.unknown}`)
					: h(
							"pre",
							{ class: "rules", tabindex: "0", "aria-label": "Rules" },
							rules.first.join("\n") +
								(rules.rules > rules.first.length
									? `\n… and ${format.count(rules.rules - rules.first.length)} more: onramp ` +
										"select list"
									: ""),
						),
		);
		fill(
			listeners,
			h("h2", {}, "Consumers of telemetry"),
			h(
				"table",
				{ class: "values" },
				h(
					"thead",
					{},
					h(
						"tr",
						{},
						...["Program", "Process", "Level", "Events dropped", "Not reported for"].map((name) =>
							h("th", { scope: "col" }, name),
						),
					),
				),
				h(
					"tbody",
					{},
					...attached.consumers.map((one) =>
						h(
							"tr",
							{},
							h("th", { scope: "row" }, one.name),
							h("td", {}, String(one.pid)),
							h("td", {}, one.level),
							h("td", {}, format.count(one.lost_events)),
							h("td", {}, one.unobserved_us ? format.time(one.unobserved_us) : "–"),
						),
					),
				),
			),
		);
	}

	/** What has been changed, and how to revert it. */
	function done(tuned: Tuned): void {
		const before = tuned.changed.map((one) => `${one.name}=${one.before}`);
		if (before.length > 0) undos.push({ algorithm: tuned.algorithm, profile: tuned.profile, settings: before });
		const what = tuned.changed.map((one) => `${one.name}: ${one.before} → ${one.after}`).join(", ");
		show(what || "Nothing changes: these are the values already");
	}

	function show(what: string): void {
		const last = undos.at(-1);
		const back =
			last &&
			h(
				"button",
				{ type: "button", id: "undo", click: () => void takeBack() },
				`Undo (${last.settings.join(" ")})`,
			);
		fill(message, h("p", {}, what), back);
		say(what);
	}

	async function takeBack(): Promise<void> {
		const last = undos.at(-1);
		const secret = await token();
		if (!last || !secret) return;
		try {
			const tuned = await tune(secret, last.algorithm, last.profile, last.settings);
			undos.pop();
			show(`Reverted: ${tuned.changed.map((one) => `${one.name}: ${one.before} → ${one.after}`).join(", ")}`);
		} catch (error) {
			show(said(error));
		}
	}

	const close = live(new URLSearchParams({ limit: "1" }), {
		attached(news) {
			attached = news;
			onAttached(news);
			draw();
		},
	});
	return close;
}

/** One parameter set, with its fields. */
class Sheet {
	readonly element: HTMLElement;
	private readonly fields = new Map<string, HTMLInputElement | HTMLSelectElement>();
	private readonly facts = h("p", { class: "quiet" });
	private readonly reasons = h("div", { class: "tally" });
	private readonly arms = h("div");
	private readonly wrong = h("p", { class: "wrong", role: "alert" });
	private readonly apply: HTMLButtonElement;
	private values: Record<string, number | string> = {};
	private checking = 0;

	constructor(
		private readonly row: Attached,
		private readonly set: ParameterSet,
		declared: Parameter[],
		about: string,
		writable: boolean,
		private readonly done: (tuned: Tuned) => void,
	) {
		this.apply = h("button", { type: "submit", class: "main", disabled: true }, "Apply");
		const rows = declared.map((one) => this.field(one, writable));
		const form = h(
			"form",
			{
				submit: (event: SubmitEvent) => {
					event.preventDefault();
					void this.send();
				},
			},
			h("div", { class: "fields" }, ...rows),
			this.wrong,
			declared.length === 0
				? h("p", { class: "quiet" }, "It has no parameters.")
				: writable
					? h(
							"p",
							{ class: "actions" },
							this.apply,
							h("button", { type: "button", click: () => this.reset() }, "Reset"),
							h("span", { class: "quiet" }, "Open flows read new values with their next ACK."),
						)
					: h(
							"p",
							{ class: "quiet" },
							"This server changes nothing: start it with --write-token-file FILE to tune here.",
						),
		);
		this.element = h(
			"section",
			{ class: "card sheet", "data-algorithm": row.algorithm },
			h(
				"h2",
				{},
				row.algorithm,
				h("span", { class: "chip" }, `as ${row.congestion_control}`),
				h("span", { class: "chip" }, `base ${row.base}`),
				h("span", { class: "chip" }, `profile ${set.profile}`),
			),
			h("p", {}, about),
			this.facts,
			this.reasons,
			this.arms,
			form,
		);
	}

	private field(one: Parameter, writable: boolean): HTMLElement {
		const id = `${this.row.algorithm}-${this.set.profile}-${one.name}`;
		const common = {
			id,
			name: one.name,
			disabled: !writable,
			"aria-describedby": `${id}-help`,
			input: () => this.edited(),
		};
		const field =
			one.choices.length > 0
				? h("select", common, ...one.choices.map((choice) => h("option", { value: choice }, choice)))
				: h("input", { ...common, type: "text", inputmode: "numeric", autocomplete: "off" });
		this.fields.set(one.name, field);
		const unit = one.choices.length > 0 ? "" : ` ${one.unit}`;
		return h(
			"div",
			{ class: "field" },
			h("label", { for: id }, one.name),
			h("span", { class: "input" }, field, h("span", { class: "unit" }, unit)),
			h(
				"small",
				{ id: `${id}-help` },
				`${one.help}. ${one.choices.length > 0 ? "" : `${one.allowed}; `}default ${one.default}`,
			),
		);
	}

	/** New values come into fields that the user has not changed. */
	show(row: Attached, set: ParameterSet): void {
		const edited = new Set(this.settings().map((setting) => setting.split("=")[0]));
		this.values = set.parameters;
		for (const [name, field] of this.fields)
			if (!edited.has(name)) field.value = String(set.parameters[name] ?? "");
		this.mark();
		text(
			this.facts,
			`Generation ${set.parameters_generation}. ${format.count(row.flows_started)} flows began, ` +
				`${format.count(row.flows_adopted)} of them taken over; ${format.count(row.flows_ended)} have ` +
				`ended, ${format.count(row.exits_undone)} exits were ` +
				`undone.${row.observe ? " It observes only." : ""}`,
		);
		// A guard is the attachment's: it stands with the first of its parameter sets.
		fill(this.arms, row.guard && set === row.parameter_sets[0] && armsView(row.guard));
		const all: [string, number][] = [...Object.entries(row.exits), ["in slow start", row.ended_in_slow_start]];
		const sum = all.reduce((total, [, flows]) => total + flows, 0);
		fill(
			this.reasons,
			...all
				.filter(([, flows]) => flows > 0)
				.map(([reason, flows]) => {
					const bar = h("i", { class: `by-${reason.replaceAll(" ", "_")}` });
					bar.style.width = `${(100 * flows) / sum}%`;
					return h(
						"div",
						{},
						h("span", {}, format.words(reason)),
						h("span", { class: "track" }, bar),
						h("span", { class: "number" }, format.count(flows)),
					);
				}),
		);
	}

	private settings(): string[] {
		return [...this.fields]
			.filter(([name, field]) => name in this.values && field.value.trim() !== String(this.values[name]))
			.map(([name, field]) => `${name}=${field.value.trim()}`);
	}

	private mark(): void {
		const changed = new Set(this.settings().map((setting) => setting.split("=")[0]));
		for (const [name, field] of this.fields)
			field.closest(".field")?.classList.toggle("changed", changed.has(name));
		this.apply.disabled = changed.size === 0;
		text(this.apply, changed.size > 1 ? `Apply ${changed.size} changes` : "Apply");
	}

	/** Says what is wrong while it is typed, in the command line's words. */
	private edited(): void {
		this.mark();
		text(this.wrong, "");
		window.clearTimeout(this.checking);
		this.checking = window.setTimeout(() => void this.check(), 400);
	}

	private async check(): Promise<void> {
		const secret = await token(false);
		const settings = this.settings();
		if (!secret || settings.length === 0) return;
		try {
			await tune(secret, this.row.algorithm, this.set.profile, settings, true);
		} catch (error) {
			text(this.wrong, said(error));
		}
	}

	private async send(): Promise<void> {
		window.clearTimeout(this.checking);
		const settings = this.settings();
		const secret = await token();
		if (!secret || settings.length === 0) return;
		try {
			const tuned = await tune(secret, this.row.algorithm, this.set.profile, settings);
			for (const one of tuned.changed) this.values = { ...this.values, [one.name]: one.after };
			text(this.wrong, "");
			this.mark();
			this.done(tuned);
		} catch (error) {
			text(this.wrong, said(error));
		}
	}

	private reset(): void {
		for (const [name, field] of this.fields) field.value = String(this.values[name] ?? "");
		text(this.wrong, "");
		this.mark();
	}
}
