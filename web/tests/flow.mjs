// A flow's page in a real browser: zoom, what others would have done, a second flow next to it, and the page as a file;
// started by cli/src/verb/serve/web/recordings/tests.rs.
//
// flow.mjs CHROMIUM URL
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { addressOf, launch, saved, until } from "./browser.mjs";

const [chromiumPath, url] = process.argv.slice(2);
const SEGMENT = 1000;

/** Rows of a flow that doubles its window each round trip up to a most, and keeps it then; RTTs of one are longer. */
function rows(flow, rttUs, most, slow = -1) {
	const all = [];
	let [at, acknowledged, window] = [1_000_000 + flow, 0, 10];
	for (let round = 0; round < 12; round += 1) {
		for (let part = 1; part <= 10; part += 1) {
			const bytes = acknowledged + Math.floor((window * part * SEGMENT) / 10);
			const sent = bytes + window * SEGMENT;
			const rtt = round === slow ? 1.5 * rttUs : rttUs;
			all.push([flow, at + (part * rttUs) / 10, bytes, sent, rtt, window, window, SEGMENT, 0].join());
		}
		acknowledged += window * SEGMENT;
		at += rttUs;
		window = Math.min(2 * window, most);
	}
	return all;
}
const columns =
	"flow,at_us,acknowledged_bytes,sent_bytes,rtt_us,cwnd_segments,in_flight_segments,mss_bytes,app_limited";
const flows = [...rows(1, 50_000, 640), ...rows(2, 100_000, 160), ...rows(3, 50_000, 640, 4)];
const recording = [columns, ...flows, ""].join("\n");

const browser = await launch(chromiumPath);
const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
const complaints = [];
/** A page that takes nothing from elsewhere. */
async function opened(address, from = url) {
	const page = await context.newPage();
	page.setDefaultTimeout(60_000);
	page.on("pageerror", (error) => complaints.push(error.message));
	page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
	page.on("request", (request) => /^(blob|data):/.test(request.url()) || asked(request.url(), from));
	await page.goto(address);
	return page;
}
const asked = (address, from) => address.startsWith(from) || complaints.push(`asked elsewhere: ${address}`);

const page = await opened(url);
await page.locator(".empty").waitFor();
await page.evaluate((text) => {
	const data = new DataTransfer();
	data.items.add(new File([text], "acks.csv"));
	document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}, recording);
await page.locator(".row.flow").nth(1).waitFor();
const hash = async (on = page) => new URL(await addressOf(on)).hash;
const named = (await hash()).split("recording=")[1];
await page.evaluate((next) => (location.hash = next), `#/flow/1?recording=${named}`);

// Zoom by dragging and by keys, in all charts at once; the whole is there again by a button, a key or a double click.
const charts = page.locator(".charts:not(.compared) .chart:visible .u-over");
await charts.first().waitFor();
/** From when to when the charts show, by what the pointer says at their edges. */
async function stretch(on = page) {
	const ends = [];
	for (const edge of [1, -1]) {
		const over = on.locator(".charts:not(.compared) .chart:visible .u-over").nth(1);
		await over.scrollIntoViewIfNeeded();
		const { x, y, width, height } = await over.boundingBox();
		await on.mouse.move(edge > 0 ? x + 1 : x + width - 1, y + height / 2);
		const said = await on.locator(".charts:not(.compared) .legend").nth(1).getAttribute("data-at");
		ends.push(Number(/at (-?[0-9.]+) s/.exec(said)?.[1]));
	}
	return ends;
}
const length = ([from, to]) => to - from;
/** Of what the charts show now, once it is as it should be. */
const shown = (check, on = page) =>
	until(async () => {
		const now = await stretch(on);
		assert.ok(check(now), `${now}`);
		return now;
	});
const same = (wanted) => (now) => now[0] === wanted[0] && now[1] === wanted[1];
const all = page.getByRole("button", { name: "All of it" });
const whole = await shown((now) => length(now) > 0.4);
const zoomed = await until(async () => {
	await page.keyboard.press("0");
	await all.waitFor({ state: "hidden" });
	await charts.first().scrollIntoViewIfNeeded();
	const { x, y, width, height } = await charts.first().boundingBox();
	await page.mouse.move(x + 0.25 * width, y + height / 2);
	await page.mouse.down();
	await page.mouse.move(x + 0.5 * width, y + height / 2, { steps: 5 });
	await page.mouse.up();
	await all.waitFor({ timeout: 5_000 });
	const now = await stretch();
	assert.ok(length(now) < 0.35 * length(whole) && now[0] > whole[0], `${now} of ${whole}`);
	return now;
});
// Neither do new values end it, nor are charts that are made anew without it.
await charts.first().click({ position: { x: 90, y: 60 } });
await until(async () => assert.match(await hash(), /[?&]t=[0-9.]+/));
await shown(same(zoomed));
await page.keyboard.press("t");
await shown(same(zoomed));
await page.keyboard.press("ArrowRight");
await shown((now) => now[0] > zoomed[0] && now[1] > zoomed[1]);
await page.keyboard.press("+");
await shown((now) => length(now) < length(zoomed));
await all.click();
await shown(same(whole));
await page.keyboard.press("+");
await all.waitFor();
await page.keyboard.press("0");
await all.waitFor({ state: "hidden" });
await page.keyboard.press("+");
// Playwright has no double click in Firefox.
await charts.first().dispatchEvent("dblclick");
await all.waitFor({ state: "hidden" });

// A second flow: curves of both, figures of both, and an address that has it.
const compared = page.locator(".compared");
assert.ok(await compared.isHidden());
await page.getByLabel("Compare with").selectOption("2");
await compared.locator(".chart canvas").nth(1).waitFor();
await until(async () => {
	assert.match(await hash(), /[?&]with=2(&|$)/);
	const legend = await compared.locator(".legend").first().innerText();
	assert.ok(legend.includes("this") && legend.includes("other"), legend);
	const figure = (name) => compared.locator("tr", { hasText: name }).locator("td").allInnerTexts();
	assert.deepEqual(await figure("min RTT"), ["50.0 ms", "100 ms"]);
	const [one, two] = await figure("delivered");
	assert.notEqual(one, two);
});
await compared
	.locator(".u-over")
	.first()
	.click({ position: { x: 90, y: 60 } });
await until(async () => assert.match(await hash(), /with=2.*t=[0-9.]+/));
const chosen = await addressOf(page);
const linked = await opened(chosen);
await linked.locator(".compared .chart canvas").nth(1).waitFor();
assert.equal(await linked.getByLabel("Compare with").inputValue(), "2");
assert.equal(await hash(linked), new URL(chosen).hash);
await linked.goto(chosen.replace("with=2", "with=77"));
await linked.reload();
await linked.locator(".picker .wrong", { hasText: "not known" }).waitFor();
assert.ok(await linked.locator(".compared").isHidden());
await linked.close();
for (const colorScheme of ["light", "dark"]) {
	await page.emulateMedia({ colorScheme });
	for (const wide of [390, 1280]) {
		await page.setViewportSize({ width: wide, height: 860 });
		await until(async () => {
			const needed = await page.evaluate(() => document.documentElement.scrollWidth);
			assert.ok(needed <= wide, `a flow's page is ${needed} wide on ${wide}`);
		});
	}
}

// The page as a file: opened without a server it has the same, and asks for nothing.
const { name, bytes } = await saved(page, page.getByRole("button", { name: "Save page" }));
assert.match(name, /^onramp-.*\.html$/);
assert.ok(bytes.length < 1_000_000, `${bytes.length}`);
const directory = mkdtempSync(join(tmpdir(), "onramp-page-"));
const path = join(directory, name);
writeFileSync(path, bytes);
const file = await opened(pathToFileURL(path).href, "file:");
await file.locator(".compared .chart canvas").nth(1).waitFor();
await until(async () => {
	assert.equal(await file.locator(".story").innerText(), await page.locator(".story").innerText());
	const tiles = await file.locator(".tiles").innerText();
	for (const words of await page.locator(".tile dd").allInnerTexts()) assert.ok(tiles.includes(words), words);
});
await shown(same(whole), file);
await file.keyboard.press("+");
await file.getByRole("button", { name: "All of it" }).waitFor();
await shown((now) => length(now) < length(whole), file);
for (const name of ["Save page", "Compare with", "All flows"])
	assert.equal(await file.getByText(name).isVisible(), false);
await file.keyboard.press("1");
await file.locator(".compared").waitFor();
rmSync(directory, { recursive: true });
await page.getByLabel("Compare with").selectOption("");
await compared.waitFor({ state: "hidden" });
await until(async () => assert.ok(!(await hash()).includes("with=")));

// A round of longer RTTs, at which HyStart would have left with 160 segments: by CUBIC's 5 % a round trip there are 226
// in the end.
await page.evaluate((next) => (location.hash = next), `#/flow/3?recording=${named}`);
await until(async () => {
	const labels = await page
		.locator(".chart:visible [aria-label]")
		.evaluateAll((all) => all.map((one) => one.ariaLabel));
	const windows = labels.map((label) => /hystart instead (\d+)/.exec(label)?.[1]).filter(Boolean);
	assert.ok(windows.length === 1 && Math.abs(windows[0] - 226) < 8, labels.join("\n"));
});

assert.deepEqual(complaints, []);
await browser.close();
process.exit(0);
