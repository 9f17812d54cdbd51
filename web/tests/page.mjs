// The page in a real Chromium, against a real server with a real flow; started by tests/tests/web_page.rs, which
// restarts
// the server when a line asks for it.
//
// page.mjs CHROMIUM URL PORT TOKEN_FILE: the flow's local port, the token in a file.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { addressOf, launch, PATIENCE, saved, until } from "./browser.mjs";

const [chromiumPath, url, port, tokenFile] = process.argv.slice(2);
const token = readFileSync(tokenFile, "utf8").trim();
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Asks the starter for something, and waits until it is done. */
async function please(what) {
	console.log(what);
	const { value } = await lines.next();
	assert.equal(value, what);
}

const browser = await launch(chromiumPath);
const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
const page = await context.newPage();
page.setDefaultTimeout(PATIENCE);
const complaints = [];
page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
page.on("console", (message) => {
	if (message.type() === "error" && /Content Security Policy|Refused|TypeError/.test(message.text()))
		complaints.push(message.text());
});
page.on("request", (request) => {
	if (!request.url().startsWith(url)) complaints.push(`asked elsewhere: ${request.url()}`);
});

const story = (words) => page.locator(".story", { hasText: words }).waitFor();
const hearing = (word) => page.locator(".hearing", { hasText: word }).waitFor();
const row = page.locator(".row.flow", { hasText: `:${port}` }).first();

// The list, its filter and its keys.
await page.goto(url);
await row.waitFor();
await page.keyboard.press("/");
await page.keyboard.type("sport = ");
await page.locator("#wrong", { hasText: "needs a value" }).waitFor();
await page.locator("#search").fill(`dport = :${port} and sport = :${port}`);
await page.locator(".empty", { hasText: "No flow passes this filter" }).waitFor();
await page.locator("#search").fill(`sport = :${port}`);
await row.waitFor();
assert.match(await row.innerText(), /slow start/);
await page.locator("#search").blur();
await page.keyboard.press("j");
await page.keyboard.press("Enter");

// The flow, in its first slow start.
await page.locator("h1", { hasText: `:${port}` }).waitFor();
await story("Is in its first slow start.");
await page.locator(".chart canvas").first().waitFor();
// Others have watched it from its first data on.
for (const other of ["search", "hystart"]) await page.locator(".others th", { hasText: other }).waitFor();

// Tuning reaches it, with a window that it has already; a wrong token does not.
await page.keyboard.press("3");
const sheet = page.locator('[data-algorithm="fixed"]');
const field = sheet.locator('[name="exit_window_bytes"]');
await field.fill("12000");
await sheet.getByRole("button", { name: "Apply" }).click();
await page.locator("#token").fill("not the right one, but long");
await page.getByRole("button", { name: "Use it" }).click();
await sheet.locator(".wrong", { hasText: "token is missing or wrong" }).waitFor();
await field.fill("-5");
await sheet.getByRole("button", { name: "Apply" }).click();
await page.locator("dialog [role=alert]", { hasText: "has refused the token" }).waitFor();
await page.locator("#token").fill(token);
await page.getByRole("button", { name: "Use it" }).click();
await sheet.locator(".wrong", { hasText: "exit_window_bytes" }).waitFor();
await field.fill("12000");
await sheet.getByRole("button", { name: "Apply" }).click();
await page.locator(".message", { hasText: "exit_window_bytes: 0 → 12000" }).waitFor();
await page.goBack();
await story("Left slow start by its algorithm");
await page.locator(".chip.reason", { hasText: "exit: algorithm" }).waitFor();

// Its window on either axis, its values as a file, and a moment that the address names.
const axis = page.getByRole("button", { name: "Logarithmic" });
for (const [before, after] of [
	["true", "false"],
	["false", "true"],
]) {
	assert.equal(await axis.getAttribute("aria-pressed"), before);
	await axis.click();
	assert.equal(await axis.getAttribute("aria-pressed"), after);
}
const values = await saved(page, page.getByRole("button", { name: "Window: save the values as CSV" }));
assert.equal(values.name, "window.csv");
const [columns, ...rows] = values.bytes.toString().trim().split("\n");
assert.match(columns, /^seconds,.*cwnd$/);
assert.ok(rows.length > 0 && rows.every((row) => row.split(",").length === columns.split(",").length));
const picture = await saved(page, page.getByRole("button", { name: "Window: save the chart as PNG" }));
assert.equal(picture.bytes.subarray(1, 4).toString(), "PNG");
await page
	.locator(".chart .u-over")
	.first()
	.click({ position: { x: 40, y: 40 } });
const moment = await until(async () => {
	const now = new URL(await addressOf(page));
	assert.match(now.hash, /[?&]t=[0-9.]+/);
	return now;
});
// Opened in a page of its own: this one keeps the token that it was given.
const linked = await context.newPage();
linked.setDefaultTimeout(PATIENCE);
await linked.goto(moment.href);
await linked.locator(".story", { hasText: "Left slow start by its algorithm" }).waitFor();
assert.equal(await addressOf(linked), moment.href);
await linked.close();

// The server begins anew, and the page goes on with the same flow and what it knows of it.
await page.locator(".others th", { hasText: "hystart" }).waitFor();
await please("restart");
await hearing("live");
const delivered = page.locator(".tile", { hasText: "delivered" }).locator("dd");
const before = await delivered.innerText();
await page.waitForFunction(
	([was]) =>
		[...document.querySelectorAll(".tile")].some(
			(tile) => tile.firstChild.textContent === "delivered" && tile.lastChild.textContent !== was,
		),
	[before],
);
assert.equal(await page.locator(".others th", { hasText: "hystart" }).count(), 1);
await story("Left slow start by its algorithm");
// A page that begins now has what the new server has seen, which is not the flow's beginning.
const other = await context.newPage();
other.setDefaultTimeout(PATIENCE);
await other.goto(await addressOf(page));
await other.locator(".others", { hasText: "Not known" }).waitFor();
await other.close();

// What was tuned is reverted.
await page.keyboard.press("3");
await field.waitFor();
await page.waitForFunction(() => document.querySelector('[name="exit_window_bytes"]').value === "12000");
await field.fill("13000");
await sheet.getByRole("button", { name: "Apply" }).click();
await page.getByRole("button", { name: "Undo (exit_window_bytes=12000)" }).click();
await page.locator(".message", { hasText: "Reverted: exit_window_bytes: 13000 → 12000" }).waitFor();

// Without a token file nothing can be changed, by the page or past it.
await please("restart read-only");
await page.reload();
await sheet.waitFor();
assert.equal(await field.isDisabled(), true);
assert.equal(await sheet.getByRole("button", { name: "Apply" }).count(), 0);
const status = await page.evaluate(async (secret) => {
	const headers = { "Content-Type": "application/json", Authorization: `Bearer ${secret}` };
	const body = JSON.stringify({ algorithm: "fixed", settings: ["exit_window_bytes=1"] });
	return (await fetch("/api/tune", { method: "POST", headers, body })).status;
}, token);
assert.equal(status, 403);

// Every view on a narrow screen, light and dark, by name for those who do not see it.
for (const colorScheme of ["light", "dark"]) {
	await page.emulateMedia({ colorScheme });
	for (const width of [390, 1280]) {
		await page.setViewportSize({ width, height: 844 });
		for (const [hash, there] of [
			["flows", ".row.flow"],
			["population", ".heat"],
			["algorithms", '[data-algorithm="fixed"]'],
		]) {
			await page.evaluate((next) => (location.hash = `#/${next}`), hash);
			await page.locator(there).first().waitFor();
			const wide = await page.evaluate(() => document.documentElement.scrollWidth);
			assert.ok(wide <= width, `${hash} is ${wide} wide on ${width}`);
			const nameless = await page.evaluate(() =>
				[...document.querySelectorAll("button, a[href], input, select, canvas[role]")]
					.filter((one) => one.checkVisibility())
					.filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length))
					.map((one) => one.outerHTML),
			);
			assert.deepEqual(nameless, [], hash);
		}
	}
}

// What comes over the network is text, whatever it looks like.
const script = '<img src=x onerror="window.taken=1"><script>window.taken=1</script>';
const flow = {
	flow: 1,
	local_address: script,
	local_port: 1,
	remote_address: script,
	remote_port: 2,
	algorithm: script,
	parameter_set: 0,
	parameters_generation: 0,
	state: script,
	started_us: 1,
	at_us: 2,
	cwnd_segments: 1,
	ssthresh_segments: null,
	in_flight_segments: 1,
	mss_bytes: 1,
	rtt_us: 1,
	min_rtt_us: 1,
	rate_bps: 1,
	rate_max_bps: 1,
	bdp_bytes: 1,
	bdp_at_least: false,
	idle: false,
	acknowledged_bytes: 1,
	retransmitted_bytes: 1,
	exit: {
		reason: script,
		since_start_us: 1,
		acknowledged_bytes: 1,
		cwnd_segments: 1,
		window_bytes: 1,
		cwnd_after_segments: 1,
		in_flight_segments: 1,
		mss_bytes: 1,
		rtt_us: 1,
		min_rtt_us: 1,
		undone: 0,
	},
};
const listed = {
	full: true,
	total: 1,
	matched: 1,
	lost_events: 0,
	unobserved_us: 0,
	groups: [{ name: script, flows: 1, listed: 1 }],
	order: ["1"],
	flows: [flow],
};
const together = {
	flows: 1,
	left: 1,
	map: { rtt_us: [100, 2e6], exit_to_bdp: [1 / 128, 32], cells: [40, 24], flows: [[0, 0, 1]] },
	distributions: [
		{
			measure: "exit_to_bdp",
			algorithm: script,
			parameter_set: 0,
			flows: 1,
			quantiles: Array(101).fill(1),
			within: 1,
		},
	],
	networks: [{ network: script, flows: 1, median_rtt_us: 1, exit_to_bdp: [1, 1, 1, 1, 1] }],
	worst: { early: [flow], late: [], retransmitted: [] },
};
const events = { flows: listed, population: together };
const said = Object.entries(events)
	.map(([name, body]) => `event: ${name}\ndata: ${JSON.stringify(body)}\n\n`)
	.join("");
await page.route("**/api/live*", (route) => route.fulfill({ contentType: "text/event-stream", body: said }));
for (const [hash, there] of [
	["flows?group=algorithm", ".row.grouped"],
	["population", ".worst a"],
]) {
	await page.evaluate((next) => (location.hash = `#/${next}`), hash);
	await page.locator(there, { hasText: "<img src=x" }).first().waitFor();
}
assert.equal(await page.evaluate(() => window.taken), undefined);

// A guarded algorithm next to its control: the numbers, the interval where it belongs, and a trip.
const arms = {
	control_share_pct: 10,
	flows_needed: 30,
	tripped: { metric: "goodput", at_us: 1 },
	treated: { flows: 812, retransmit_ratio_pct: 1.25, goodput_bps: 8.4e6 },
	control: { flows: 95, retransmit_ratio_pct: null, goodput_bps: 1.2e7 },
	comparisons: [
		{
			metric: "goodput",
			difference_pct: -30,
			interval_pct: [-40, -20],
			margin_pct: -10,
			verdict: "tripped 3 s ago",
		},
		{
			metric: "retransmit_ratio",
			difference_pct: null,
			interval_pct: null,
			margin_pct: 2,
			verdict: "cannot say yet",
		},
	],
};
const sets = [{ profile: "default", parameters_generation: 1, parameters: {}, telemetry_max: "ack" }];
const guarded = {
	algorithms: [
		{
			algorithm: "plain",
			state: "attached",
			congestion_control: "onramp_plain",
			base: "cubic",
			observe: false,
			version: "1",
			attached_at_us: 1,
			expires_at_us: null,
			guard: arms,
			parameter_sets: [...sets, { ...sets[0], profile: "geo" }],
			flows_started: 1,
			flows_adopted: 0,
			flows_ended: 0,
			flows_without_state: 0,
			exits_undone: 0,
			ended_in_slow_start: 0,
			exits: {},
		},
	],
	consumers: [],
};
await page.unroute("**/api/live*");
await page.route("**/api/live*", (route) =>
	route.fulfill({ contentType: "text/event-stream", body: `event: attached\ndata: ${JSON.stringify(guarded)}\n\n` }),
);
await page.evaluate(() => (location.hash = "#/algorithms"));
await page.locator(".arms").waitFor();
assert.equal(await page.locator(".arms").count(), 1, "once, not with every parameter set");
const compared = await page.locator(".arms").innerText();
for (const words of [
	"10 % of flows stay on the base",
	"the base runs alone",
	"812",
	"1.25 %",
	"12.0 Mbit/s",
	"−30.00 % (−40.00 to −20.00): tripped 3 s ago",
	"cannot say yet",
])
	assert.ok(compared.includes(words), `${words}: ${compared}`);
const [span, zero] = await page.evaluate(() =>
	[".interval .span", ".interval .zero"].map((name) => document.querySelector(name).getBoundingClientRect().toJSON()),
);
assert.ok(span.right < zero.left && span.width > 10, "all of it lies below zero");
assert.equal(await page.locator(".interval").count(), 1);

assert.deepEqual(complaints, []);
await browser.close();
console.log("done");
process.exit(0);
