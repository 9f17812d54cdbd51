// The page of a server without live flows, in a real Chromium; started by cli/src/verb/serve/web/recordings.rs.
//
// offline.mjs CHROMIUM URL
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

await page.goto(url);
await page.locator(".empty", { hasText: "Nothing is open." }).waitFor();
const claims = async () => ({
	live: await page.locator(".hearing").isVisible(),
	algorithms: await page.locator('[data-view="algorithms"]').isVisible(),
	attach: (await page.locator("body").innerText()).includes("Attach"),
	back: await page.getByRole("button", { name: "Back to live flows" }).count(),
});
const none = { live: false, algorithms: false, attach: false, back: 0 };
assert.deepEqual(await claims(), none);
await page.keyboard.press("3");
assert.ok(!(await addressOf(page)).includes("algorithms"));
const files = readdirSync(RECORDING).map((name) => [name, readFileSync(`${RECORDING}/${name}`).toString("base64")]);
await page.evaluate((all) => {
	const data = new DataTransfer();
	for (const [name, text] of all)
		data.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name));
	document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}, files);
await page.locator(".story", { hasText: "Left slow start" }).waitFor();
assert.deepEqual(await claims(), none);
await page.getByRole("button", { name: "Close" }).click();
await page.locator(".empty", { hasText: "Nothing is open." }).waitFor();
assert.deepEqual(await claims(), none);

assert.deepEqual(errors, []);
await browser.close();
process.exit(0);
