// Files on the page in a real Chromium; started by cli/src/verb/serve/web/recordings.rs.
//
// open.mjs CHROMIUM URL
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { addressOf, launch } from "./browser.mjs";

const [chromiumPath, url] = process.argv.slice(2);
const RECORDING = "../recording/src/tests/recorded";

const browser = await launch(chromiumPath);
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
			assert.ok(wide <= width, `${await addressOf(page)} is ${wide} wide on ${width}`);
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
const first = await addressOf(page);
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
// A reload still shows it, for the address names it.
await page.reload();
await page.locator(".opened", { hasText: "opened before" }).waitFor();
await page.locator(".summary", { hasText: "of 1 flows" }).waitFor();
await page.getByRole("button", { name: "Back to live flows" }).click();
await page.locator(".empty", { hasText: "No flow yet" }).waitFor();

// The one before is another one, of which this page knows no more: it was loaded anew.
const recording = readdirSync(RECORDING).map((name) => [name, readFileSync(`${RECORDING}/${name}`)]);
await drop(recording);
await page.locator(".opened", { hasText: /^A recording in \d files: 1 flow, recorded/ }).waitFor();
const second = await addressOf(page);
await page.goto(first);
await page.locator(".opened", { hasText: "opened before" }).waitFor();
await page.goto(second);
await page.locator(".opened", { hasText: /^A recording in \d files: 1 flow, recorded/ }).waitFor();

await page.keyboard.press("o");
assert.equal(await page.locator("dialog input[webkitdirectory]").count(), 1);
await page.keyboard.press("Escape");

// What cannot be opened is named, with what can.
await drop([["notes.txt", "precious"]]);
await refused("notes.txt: its first line lacks the columns");
await drop([["capture.pcap", Buffer.from("d4c3b2a1020004000000000000000000ffff000001000000", "hex")]]);
await refused("a packet capture (pcap)");
await drop([["result.json", '{"arms": []}']]);
await refused("onramp-lab plot");
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
await refused("broken.json");
await drop([["acks-000001.parquet", "PAR1 but not really PAR1"]]);
await refused("acks-000001.parquet");

// Where nothing is attached, flows of all controls, as the server says: until something is. What is in them is text.
const script = '<img src=x onerror="window.taken=1">';
const other = (number, more) => ({
	local_address: "192.0.2.1",
	local_port: 443,
	remote_address: `198.51.100.${number}`,
	remote_port: 40_000,
	tcp_state: "established",
	cookie: number,
	congestion_control: "cubic",
	limited: "receive_window",
	cwnd_segments: 117,
	ssthresh_segments: null,
	smoothed_rtt_us: 52_300,
	min_rtt_us: null,
	acknowledged_bytes: 2_000_000,
	retransmitted_segments: 3,
	delivery_rate_bytes_per_s: 1_250_000,
	delivery_rate_app_limited: false,
	...more,
});
const flows = [other(1), other(2, { congestion_control: script, limited: null, delivery_rate_app_limited: true })];
const status = { schema: 1, algorithms: [], consumers: [], selection: null, unreadable: null };
const listed = { schema: 1, full: true, total: 0, matched: 0, lost_events: 0, unobserved_us: 0, order: [], flows: [] };
let events = { flows: listed, attached: { ...status, others: { total: 1_234, flows } } };
const said = () => Object.entries(events).map(([name, body]) => `event: ${name}\ndata: ${JSON.stringify(body)}\n\n`);
await page.route("**/api/live*", (route) => route.fulfill({ contentType: "text/event-stream", body: said().join("") }));
await page.goto(`${url}#/population`);
await page.goto(`${url}#/flows`);
const controls = page.locator(".controls");
await controls.locator("tbody tr").nth(1).waitFor();
const cells = (row) => controls.locator("tbody tr").nth(row).locator("td").allInnerTexts();
assert.deepEqual(await cells(0), [
	"198.51.100.1:40000",
	"192.0.2.1:443",
	"cubic",
	"receive window",
	"117",
	"52.3 ms",
	"10.0 Mbit/s",
	"2.00 MB",
	"3",
]);
assert.deepEqual((await cells(1)).slice(2, 7), [script, "–", "117", "52.3 ms", "≥ 10.0 Mbit/s"]);
assert.match(await page.locator(".summary").innerText(), /^Nothing is attached.* 2 of 1,234 /);
await fits();
await page.locator("#search").waitFor({ state: "hidden" });
assert.equal(await page.evaluate(() => window.taken), undefined);
events = { flows: listed, attached: { ...status, others: null } };
await page.locator(".empty", { hasText: "No flow yet" }).waitFor();
assert.ok(await controls.isHidden());
await page.locator("#search").waitFor();

assert.deepEqual(errors, []);
await browser.close();
process.exit(0);
