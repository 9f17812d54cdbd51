// A document of the lab in a real Chromium; started by lab/src/page.rs.
//
// lab.mjs CHROMIUM results|report FILE
import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [chromiumPath, what, file] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const browser = await launch(chromiumPath);
const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
page.setDefaultTimeout(60_000);
const errors = [];
page.on("pageerror", (error) => errors.push(error.message));
page.on("request", (request) => request.url() === url || errors.push(`asked elsewhere: ${request.url()}`));

await page.goto(url);
if (what === "results") {
	await page.locator("h1", { hasText: "</script><img src=x" }).waitFor();
	const times = await page.locator(".strip", { hasText: "Download time" }).innerText();
	assert.match(times, /4\.10 s[\s\S]*2\.05 s/, "means of what counts");
	const best = await page.locator(".strip .best").first().innerText();
	assert.ok(best.includes("2.05 s"), best);
	await page.locator("details", { hasText: "1 runs do not count" }).waitFor();
	await page.locator(".charts canvas").first().waitFor();
} else {
	await page.locator("h1", { hasText: "Report replay.json" }).waitFor();
	await page.locator(".others tr", { hasText: "not before the flow itself left (bin open)" }).waitFor();
	await page.locator(".others tr", { hasText: "3.00 s" }).waitFor();
}
assert.equal(await page.evaluate(() => window.taken), undefined, "what a file says is text");
for (const colorScheme of ["light", "dark"]) {
	await page.emulateMedia({ colorScheme });
	for (const width of [390, 1280]) {
		await page.setViewportSize({ width, height: 860 });
		const wide = await page.evaluate(() => document.documentElement.scrollWidth);
		assert.ok(wide <= width, `it is ${wide} wide on ${width}`);
	}
}

assert.deepEqual(errors, []);
await browser.close();
process.exit(0);
