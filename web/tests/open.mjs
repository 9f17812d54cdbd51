// Files on the page in a real Chromium; started by cli/src/verb/serve/web/recordings.rs.
//
// open.mjs CHROMIUM URL
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const [chromiumPath, url] = process.argv.slice(2);
const RECORDING = "../recording/src/tests/recorded";

const browser = await chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
page.setDefaultTimeout(60_000);
const errors = [];
page.on("pageerror", (error) => errors.push(error.message));
page.on("request", (request) => request.url().startsWith(url) || errors.push(`asked elsewhere: ${request.url()}`));

/** Drops files of these names and bytes on the page. */
async function drop(files) {
	const given = files.map(([name, bytes]) => [name, Buffer.from(bytes).toString("base64")]);
	await page.evaluate((all) => {
		const data = new DataTransfer();
		for (const [name, text] of all)
			data.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name));
		for (const type of ["dragenter", "dragover", "drop"])
			document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
	}, given);
}

/** What is said in place of opening something. */
async function refused(words) {
	await page.locator("dialog p", { hasText: words }).waitFor();
	await page.getByRole("button", { name: "Close" }).click();
}

/** Nothing is wider than the screen, and whatever can be used has a name. */
async function fits() {
	for (const colorScheme of ["light", "dark"]) {
		await page.emulateMedia({ colorScheme });
		for (const width of [390, 1280]) {
			await page.setViewportSize({ width, height: 860 });
			const wide = await page.evaluate(() => document.documentElement.scrollWidth);
			assert.ok(wide <= width, `${await page.url()} is ${wide} wide on ${width}`);
		}
	}
	const nameless = await page.evaluate(() =>
		[...document.querySelectorAll("button, a[href], input, select, canvas[role], [role=img]")]
			.filter((one) => one.checkVisibility())
			.filter((one) => !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length))
			.map((one) => one.outerHTML),
	);
	assert.deepEqual(nameless, []);
}

await page.goto(url);
await page.locator(".empty", { hasText: "No flow yet" }).waitFor();

// A recording: its only flow, what others would have done, the same views of it, and back.
await drop(readdirSync(RECORDING).map((name) => [name, readFileSync(`${RECORDING}/${name}`)]));
await page.locator(".story", { hasText: "Left slow start" }).waitFor();
await page.locator(".opened", { hasText: /^A recording in \d files: 1 flow, recorded/ }).waitFor();
const first = page.url();
await page.locator(".others tr", { hasText: "ramp" }).waitFor();
assert.ok(await page.locator('[data-view="algorithms"]').isHidden(), "a recording has nothing to tune");
await fits();
await page.keyboard.press("1");
await page.locator(".row.flow").first().waitFor();
await page.locator("#search").fill("dport = :1");
await page.locator(".empty", { hasText: "No flow passes this filter" }).waitFor();
await page.locator("#search").blur();
await page.keyboard.press("2");
await page.locator(".summary", { hasText: "of 1 flows" }).waitFor();
await fits();
// Whoever loads it anew still sees it, for the address names it.
await page.reload();
await page.locator(".opened", { hasText: "opened before" }).waitFor();
await page.locator(".summary", { hasText: "of 1 flows" }).waitFor();
await page.getByRole("button", { name: "Back to live flows" }).click();
await page.locator(".empty", { hasText: "No flow yet" }).waitFor();

// The one before is another one, of which this page knows no more: it was loaded anew.
const recording = readdirSync(RECORDING).map((name) => [name, readFileSync(`${RECORDING}/${name}`)]);
await drop(recording);
await page.locator(".opened", { hasText: /^A recording in \d files: 1 flow, recorded/ }).waitFor();
const second = page.url();
await page.goto(first);
await page.locator(".opened", { hasText: "opened before" }).waitFor();
await page.goto(second);
await page.locator(".opened", { hasText: /^A recording in \d files: 1 flow, recorded/ }).waitFor();

// A result of the lab, while a recording is open, stays in the page: arms next to each other, with their flows over
// time.
const run = (seconds, valid = true) => ({
	valid,
	seed: 1,
	seconds,
	goodput_bps: 8e7 / seconds,
	retransmitted_segments: 3,
	max_rtt_us: 70_000,
	mean_rtt_us: 6e4,
	min_rtt_us: 5e4,
	exit: { reason: "algorithm", seconds: 1, window_bytes: 5e5 },
	regret: { window_to_bdp: 0.8, early_us: 20_000, queue_us: 0, at_least: false },
});
const script = '<img src=x onerror="window.taken=1">';
const result = {
	schema: 2,
	profile: script,
	clock: "virtual",
	kernel: "6.12",
	bytes: 1e7,
	bdp_bytes: 625_000,
	base_rtt_us: 5e4,
	rate_bps: 1e8,
	arms: [
		{ arm: "cubic", runs: [run(4), run(4.2)] },
		{ arm: script, runs: [run(2), run(2.1), run(9, false)] },
	],
};
await drop([["result.json", JSON.stringify(result)]]);
await page.locator("h1", { hasText: "<img src=x" }).waitFor();
assert.ok(await page.locator(".opened").isHidden(), "a result is of no recording");
const times = await page.locator(".strip", { hasText: "Download time" }).innerText();
assert.match(times, /4\.10 s[\s\S]*2\.05 s/, "means of what counts");
assert.equal(
	await page
		.locator(".strip .best")
		.first()
		.innerText()
		.then((text) => text.includes("2.05 s")),
	true,
);
await page.locator("details", { hasText: "1 runs do not count" }).waitFor();
await fits();
await page.keyboard.press("o");
const directory = page.locator("dialog input[webkitdirectory]");
assert.equal(await directory.count(), 1);
await page.keyboard.press("Escape");

// A report of onramp replay.
const finding = (algorithm, exit) => ({
	algorithm,
	exit,
	regret: exit && { window_to_bdp: 0.5, early_us: 3e6, queue_us: 0 },
	last_outcome: "bin_open",
});
const report = {
	schema: 2,
	flows: [
		{
			flow: 7,
			local: "192.0.2.1:1",
			remote: "192.0.2.2:2",
			algorithm: "search",
			given: null,
			findings: [
				finding("hystart", { since_start_us: 1e6, window_bytes: 1e6, cwnd_segments: 700 }),
				finding(script, null),
			],
		},
	],
};
await drop([["replay.json", JSON.stringify(report)]]);
await page.locator(".others tr", { hasText: "not before the flow itself left (bin open)" }).waitFor();
await page.locator(".others tr", { hasText: "3.00 s" }).waitFor();
await fits();
assert.equal(await page.evaluate(() => window.taken), undefined, "what a file says is text");

// What cannot be opened is named, with what can.
await drop([["notes.txt", "precious"]]);
await refused("notes.txt: its first line lacks the columns");
await drop([["capture.pcap", Buffer.from("d4c3b2a1020004000000000000000000ffff000001000000", "hex")]]);
await refused("a packet capture (pcap)");
await drop([["iperf3.json", '{"start": {"connected": []}, "intervals": []}']]);
await refused("a result of iperf3");
await drop([
	["one.txt", "1"],
	["two.txt", "2"],
]);
await refused("Nothing here can be opened (one.txt, two.txt)");
await drop([["flows.sqlog", "\u001e{}\n"]]);
await refused("open the recording that it was exported from");
await drop([["broken.json", "{"]]);
await refused("broken.json is no JSON");
await drop([["acks-000001.parquet", "PAR1 but not really PAR1"]]);
await refused("acks-000001.parquet");

assert.deepEqual(errors, []);
await browser.close();
process.exit(0);
