// The page: its bar, its views by address, its keys.

import { algorithmsView } from "./algorithms";
import { get, type Hearing, onHearing } from "./api";
import { flowTitle } from "./compare";
import { fill, h, hasModifier, isTyped, say, text } from "./dom";
import { flowView, savedView } from "./flow";
import { flowsView } from "./flows";
import { ask, banner, listen } from "./open";
import { populationView } from "./population";
import type { About, Status } from "./schema";
import { type Saved, savedHere } from "./share";
import { address, choose, isLive, isSaved, recording, setLive, setSaved } from "./source";
import { apply, setTheme, type Theme, theme } from "./theme";
import { forget } from "./token";

const VIEWS = [
	["flows", "Flows"],
	["population", "Population"],
	["algorithms", "Algorithms"],
] as const;

const KEYS: [string, string][] = [
	["1 2 3", "flows, population, algorithms"],
	["o", "open a recording"],
	["/", "filter, as in ss: dst 198.51.100.0/24 and dport = :443"],
	["j k ↓ ↑", "choose a flow; Page Up, Page Down, Home, End too"],
	["Enter", "open it"],
	["drag, + − 0", "in a chart: zoom, and back; a double click too"],
	["← →", "in a zoomed chart: earlier, later"],
	["click", "in a chart: point at a moment, which the address then names"],
	["Esc", "back; in the filter: clear it"],
	["t", "theme: as the system, light, dark"],
	["?", "these keys"],
];

const opened = h("div", { class: "opened", hidden: true });
const main = document.getElementById("main") as HTMLElement;
const bar = document.getElementById("bar") as HTMLElement;
const links = VIEWS.map(([view, label], number) =>
	h("a", { href: `#/${view}`, "data-view": view, "aria-keyshortcuts": number + 1 }, label),
);
const state = h("span", { class: "hearing waiting", role: "status" }, "connecting");
const lost = h("span", { class: "badge", hidden: true });
const stale = h("span", { class: "badge", role: "status", hidden: true });
const themeButton = h("button", { type: "button", class: "icon", click: nextTheme }, "");
const keysButton = h(
	"button",
	{ type: "button", class: "icon", "aria-label": "Keys", title: "Keys (?)", click: showKeys },
	"?",
);

const NAMES: Record<Theme, string> = { auto: "◐", light: "☀", dark: "☾" };
function nextTheme(): void {
	const next: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
	setTheme(next[theme()]);
	showTheme();
}

function showTheme(): void {
	const now = theme();
	text(themeButton, NAMES[now]);
	const label = `Theme: ${now === "auto" ? "as the system" : now}`;
	themeButton.setAttribute("aria-label", label);
	themeButton.title = `${label} (t)`;
}

function showKeys(): void {
	const dialog = h(
		"dialog",
		{ "aria-labelledby": "keys-title" },
		h("h2", { id: "keys-title" }, "Keys"),
		h(
			"dl",
			{ class: "keys" },
			...KEYS.flatMap(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]),
		),
		h("form", { method: "dialog", class: "actions" }, h("button", { class: "main" }, "Close")),
	);
	dialog.addEventListener("close", () => dialog.remove());
	document.body.append(dialog);
	dialog.showModal();
}

const CONNECTION: Record<Hearing, string> = { waiting: "connecting", live: "live", lost: "reconnecting" };
onHearing((now) => {
	state.className = `hearing ${now}`;
	if (state.textContent !== CONNECTION[now] && now === "lost") say("No connection to the server; reconnecting");
	text(state, CONNECTION[now]);
});

function onAttached(attached: Status): void {
	const all = attached.consumers.reduce((sum, one) => sum + one.lost_events, 0);
	lost.hidden = all === 0;
	text(lost, `${all.toLocaleString("en")} events lost`);
	const old = attached.unreadable;
	stale.hidden = !old;
	stale.title = old?.error ?? "";
	const since = old?.last_read_us
		? `is of ${new Date(old.last_read_us / 1000).toLocaleTimeString()}`
		: "cannot be read";
	text(stale, old ? `status ${since}: ${old.reason.replaceAll("_", " ")}` : "");
}

let about: Pick<About, "version" | "writable" | "offline"> = { version: "", writable: false, offline: false };
let leave = (): void => {};

function show(): void {
	const [path = "", query = ""] = location.hash.replace(/^#\//, "").split("?");
	const [view = "", id = ""] = path.split("/");
	const parameters = new URLSearchParams(query);
	leave();
	choose(parameters.get("recording") ?? "");
	banner(opened);
	state.hidden = recording() !== "" || !isLive();
	for (const link of links) {
		link.href = address(link.dataset.view ?? "");
		link.hidden = (recording() !== "" || !isLive()) && link.dataset.view === "algorithms";
		const here =
			link.dataset.view === view ||
			(view === "flow" && link.dataset.view === "flows") ||
			(view === "" && link.dataset.view === "flows");
		if (here) link.setAttribute("aria-current", "page");
		else link.removeAttribute("aria-current");
	}
	main.className = view || "flows";
	switch (view) {
		case "flow":
			leave = flowView(main, id, parameters, onAttached);
			document.title = "Flow – onramp";
			break;
		case "population":
			leave = populationView(main, onAttached);
			document.title = "Population – onramp";
			break;
		case "algorithms":
			leave = algorithmsView(main, about.writable, onAttached);
			document.title = "Algorithms – onramp";
			break;
		default:
			leave = flowsView(main, parameters, onAttached);
			document.title = "Flows – onramp";
	}
	main.scrollTop = 0;
}

function onKey(event: KeyboardEvent): void {
	if (isTyped(event) || hasModifier(event) || document.querySelector("dialog[open]")) return;
	if (event.key === "t") nextTheme();
	else if (!isSaved()) onViewKey(event.key);
}

function onViewKey(key: string): void {
	const view = VIEWS[Number(key) - 1];
	if (view && !(view[0] === "algorithms" && !isLive())) location.hash = address(view[0]);
	else if (key === "o") ask();
	else if (key === "?") showKeys();
	else if (key === "Escape" && location.hash.startsWith("#/flow/")) {
		if (history.length > 1) history.back();
		else location.hash = address("flows");
	}
}

/** A flow with which this document was saved. */
function showSaved(saved: Saved): void {
	setSaved();
	const at = new Date(saved.saved_at).toLocaleString();
	bar.append(h("span", { class: "brand" }, "onramp"), h("span", { class: "quiet" }, `saved ${at}`));
	bar.append(h("span", { class: "right" }, themeButton));
	main.className = "flow";
	document.title = `${flowTitle(saved.flow)} – onramp`;
	savedView(main, saved, new URLSearchParams(location.hash.split("?")[1] ?? ""));
}

function showLive(): void {
	fill(
		bar,
		h(
			"a",
			{ class: "brand", href: "#/flows" },
			h("img", { src: "/icon.svg", alt: "", width: 24, height: 24 }),
			"onramp",
		),
		h("nav", { "aria-label": "Views" }, ...links),
		h(
			"span",
			{ class: "right" },
			stale,
			lost,
			state,
			h(
				"button",
				{
					type: "button",
					class: "open",
					title: "Open a recording (o), or drop it anywhere",
					click: ask,
				},
				"Open …",
			),
			themeButton,
			keysButton,
		),
	);
	bar.after(opened);
	listen();
	window.addEventListener("hashchange", show);
	window.addEventListener("pagehide", forget);
	void get<About>("/api/about")
		.then((reply) => {
			about = reply;
			setLive(!reply.offline);
		})
		.catch(() => {})
		.finally(show);
}

document.addEventListener("keydown", onKey);
apply();
showTheme();
const saved = savedHere();
if (saved) showSaved(saved);
else showLive();
