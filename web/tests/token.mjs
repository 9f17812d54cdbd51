// The token of reading in a real Chromium; started by cli/src/verb/serve/web/tests/access.rs.
//
// token.mjs CHROMIUM URL TOKEN
import assert from "node:assert/strict";
import { launch } from "./browser.mjs";

const [chromiumPath, url, token] = process.argv.slice(2);

const browser = await launch(chromiumPath);
const page = await browser.newPage();
page.setDefaultTimeout(60_000);
const errors = [];
page.on("pageerror", (error) => errors.push(error.message));
const refusal = page.locator("dialog [role=alert]", { hasText: "has refused the token" });

async function give(text) {
	await page.locator("#token").fill(text);
	await page.getByRole("button", { name: "Use it" }).click();
}

// A client that has given none was not refused.
await page.goto(url);
await page.locator("#token").waitFor();
assert.equal(await refusal.count(), 0);
await give("not the right one, but long");
await refusal.waitFor();
// It is the same again, and again.
await give("another one that is wrong");
await page.waitForFunction(() => document.querySelector("#token")?.value === "");
await refusal.waitFor();
await give(token);
await page.locator(".hearing", { hasText: "live" }).waitFor();
assert.equal(await page.locator("dialog").count(), 0);

assert.deepEqual(errors, []);
await browser.close();
process.exit(0);
