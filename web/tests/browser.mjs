// The browser of the tests: Chromium, or Firefox where BROWSER=firefox, which Playwright then drives by WebDriver BiDi.
import { readFileSync } from "node:fs";
import { chromium, firefox } from "playwright-core";

/** Debian's. */
const FIREFOX = "/usr/bin/firefox-esr";
const inFirefox = process.env.BROWSER === "firefox";

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
