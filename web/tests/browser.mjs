// The browser of the tests: Chromium, or Firefox where BROWSER=firefox, which Playwright then drives by WebDriver BiDi.
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { chromium, firefox } from "playwright-core";

/** Debian's. */
const FIREFOX = "/usr/bin/firefox-esr";
const inFirefox = process.env.BROWSER === "firefox";

// What ended a script, in a line that .ci/failures.awk keeps.
process.on("uncaughtException", (error) => {
	const name = basename(process.argv[1]);
	const line = error.stack?.match(new RegExp(`${name}:\\d+`))?.[0];
	const message = stripVTControlCharacters(String(error.message)).replace(/\s+/g, " ");
	console.error(error);
	console.error(`FAIL: ${line ?? name}: ${message}`);
	process.exit(1);
});

/** How long anything is waited for, ms. */
export const PATIENCE = 60_000;

/** Of a page, as it says itself: what page.url() has comes later. */
export const addressOf = (page) => page.evaluate(() => location.href);

/** What `look` returns, once it no longer throws: a page shows what was done to it a moment later. */
export async function until(look) {
	for (const end = Date.now() + PATIENCE; ; await pause(50)) {
		try {
			return await look();
		} catch (error) {
			if (Date.now() > end) throw error;
		}
	}
}

export const launch = (chromiumPath) =>
	inFirefox
		? firefox.launch({ executablePath: FIREFOX, channel: "moz-firefox" })
		: chromium.launch({ executablePath: chromiumPath, args: ["--no-sandbox"] });

/** Name and bytes of the file that a button saves. */
export async function saved(page, button) {
	if (!inFirefox) {
		const download = page.waitForEvent("download");
		await button.click();
		const file = await download;
		return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
	}
	// Firefox reports downloads of what the page has made without a navigation, and Playwright passes those over.
	await page.evaluate(() => {
		URL.createObjectURL = (blob) => {
			window.made = blob;
			return "blob:";
		};
		HTMLAnchorElement.prototype.click = function () {
			window.named = this.download;
		};
	});
	await button.click();
	await page.waitForFunction(() => window.named && window.made);
	const { name, bytes } = await page.evaluate(async () => {
		const { named: name, made } = window;
		window.named = window.made = null;
		return { name, bytes: [...new Uint8Array(await made.arrayBuffer())] };
	});
	return { name, bytes: Buffer.from(bytes) };
}
