// Ten thousand flows in a real Chromium; started by cli/src/verb/serve/web/load.rs, which lets half a second pass
// whenever
// a line asks for it. With SECONDS above 0 the flows go on by themselves, and processors, frames and memory are
// measured.
//
// load.mjs CHROMIUM URL SECONDS
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import "./browser.mjs"; // says what failed

const [chromiumPath, url, secondsText] = process.argv.slice(2);
const seconds = Number(secondsText);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const FLOWS = 10_000;

async function please(what) {
	console.log(what);
	return (await lines.next()).value;
}

const server = await chromium.launchServer({ executablePath: chromiumPath, args: ["--no-sandbox"] });
const browser = await chromium.connect(server.wsEndpoint());
const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
page.setDefaultTimeout(120_000);
const errors = [];
page.on("pageerror", (error) => errors.push(error.message));
const protocol = await page.context().newCDPSession(page);
await protocol.send("Network.enable");
await protocol.send("Performance.enable");
let received = 0;
protocol.on("Network.dataReceived", (event) => (received += event.dataLength));

const counted = (text) => page.locator(".summary", { hasText: text }).waitFor();
const metrics = async () =>
	Object.fromEntries((await protocol.send("Performance.getMetrics")).metrics.map(({ name, value }) => [name, value]));

/** What a period costs, once its news have come. */
async function period() {
	const before = received;
	const reported = page.evaluate(
		() =>
			new Promise((resolve) =>
				new MutationObserver((_, observer) => {
					observer.disconnect();
					resolve();
				}).observe(document.querySelector("main"), { subtree: true, childList: true, characterData: true }),
			),
	);
	await please("period");
	await reported;
	return received - before;
}

async function counts() {
	await page.goto(`${url}#/flows`);
	await page.locator(".row.flow").first().waitFor();
	await counted("10,000 flows");
	const rows = await page.locator(".row.flow").count();
	assert.ok(rows < 60, `${rows} rows of ${FLOWS} are in the document`);
	const elements = () => page.evaluate(() => document.querySelectorAll("*").length);
	const before = await elements();
	let most = 0;
	for (let times = 0; times < 5; times += 1) most = Math.max(most, await period());
	assert.ok(most < 400_000, `${most} bytes came for one change of the list`);
	assert.equal(await elements(), before, "a change makes no more elements");

	// The last flow is as near as the first, by the keyboard too.
	await page.locator(".scroller").focus();
	await page.keyboard.press("End");
	await page.waitForFunction(
		(last) => document.querySelector(".row.chosen")?.getAttribute("aria-rowindex") === String(last + 1),
		FLOWS,
	);
	assert.ok((await page.locator(".row.flow").count()) < 60);
	await page.keyboard.press("Home");
	await page.waitForFunction(() => document.querySelector(".row.chosen")?.getAttribute("aria-rowindex") === "2");

	// Groups: as many lines more, and rows under the right one.
	await page.locator("#group").selectOption("algorithm");
	await page.locator(".row.grouped", { hasText: "hystartpp" }).first().waitFor();
	await page.keyboard.press("Escape");
	await page.locator("#group").selectOption("prefix");
	await page.locator(".row.grouped", { hasText: "198.51." }).first().waitFor();
	await page.locator("#group").selectOption("");

	// The population is counted by the server.
	await page.evaluate(() => (location.hash = "#/population"));
	await counted("of 10,000 flows");
	await page.locator(".networks > div").first().waitFor();
	const population = await period();
	assert.ok(population < 100_000, `${population} bytes came for one picture of the population`);
	assert.equal((await page.locator("[data-worst] tbody tr").count()) <= 24, true);
}

/** Processor time of all of Chromium, seconds. */
function chromiumSeconds() {
	const stats = readdirSync("/proc")
		.filter((name) => /^\d+$/.test(name))
		.flatMap((pid) => {
			try {
				const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ");
				return [
					{ pid: Number(pid), parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) },
				];
			} catch {
				return [];
			}
		});
	const family = new Set([server.process().pid]);
	for (let size = 0; size !== family.size; ) {
		size = family.size;
		for (const { pid, parent } of stats) if (family.has(parent)) family.add(pid);
	}
	return stats.filter(({ pid }) => family.has(pid)).reduce((sum, { ticks }) => sum + ticks, 0) / 100;
}

/** The page's longest task by processor time: by the clock, a busy machine makes any long. */
async function longestTask() {
	const seconds = 30;
	const events = [];
	const collect = (chunk) => events.push(...chunk.value);
	protocol.on("Tracing.dataCollected", collect);
	await protocol.send("Tracing.start", {
		transferMode: "ReportEvents",
		traceConfig: { includedCategories: ["toplevel", "__metadata"], recordMode: "recordUntilFull" },
	});
	await page.waitForTimeout(seconds * 1000);
	const complete = new Promise((resolve) => protocol.once("Tracing.tracingComplete", resolve));
	await protocol.send("Tracing.end");
	await complete;
	protocol.off("Tracing.dataCollected", collect);
	const main = new Set(
		events
			.filter((event) => event.name === "thread_name" && event.args.name === "CrRendererMain")
			.map((event) => `${event.pid}/${event.tid}`),
	);
	const tasks = events.filter(
		(event) => event.ph === "X" && event.tdur != null && main.has(`${event.pid}/${event.tid}`),
	);
	return { seconds, cpu: Math.max(0, ...tasks.map((event) => event.tdur)) / 1000 };
}

async function measure() {
	for (const [view, there] of [
		["flows", ".row.flow"],
		["flows?group=prefix&sort=rate", ".row.flow"],
		["population", ".networks > div"],
	]) {
		await page.goto("about:blank");
		await page.goto(`${url}#/${view}`);
		await page.locator(there).first().waitFor();
		await page.evaluate(() => {
			window.frames_ = { longest: 0, tasks: 0 };
			let last = performance.now();
			const frame = (now) => {
				window.frames_.longest = Math.max(window.frames_.longest, now - last);
				last = now;
				requestAnimationFrame(frame);
			};
			requestAnimationFrame(frame);
			new PerformanceObserver((list) => (window.frames_.tasks += list.getEntries().length)).observe({
				type: "longtask",
			});
		});
		await page.waitForTimeout(5_000);
		await page.evaluate(() => Object.assign(window.frames_, { longest: 0, tasks: 0 }));
		await please("spent");
		const [begin, bytes, browserBefore, before] = [Date.now(), received, chromiumSeconds(), await metrics()];
		const heaps = [];
		while (Date.now() - begin < seconds * 1000) {
			await page.waitForTimeout(Math.min(10_000, seconds * 250));
			await protocol.send("HeapProfiler.collectGarbage");
			heaps.push((await metrics()).JSHeapUsedSize / 1e6);
		}
		const time = (Date.now() - begin) / 1000;
		const after = await metrics();
		const { longest, tasks } = await page.evaluate(() => window.frames_);
		const worst = await longestTask();
		const percent = (value) => `${((100 * value) / time).toFixed(1)} %`;
		const quarter = Math.ceil(heaps.length / 4);
		const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
		console.log(
			`${view}: ${time.toFixed(0)} s, ${await please("spent")}; page ` +
				`${percent(after.TaskDuration - before.TaskDuration)} of a core, all of Chromium ` +
				`${percent(chromiumSeconds() - browserBefore)}; longest task of the page ${worst.cpu.toFixed(1)} ` +
				`ms of processor in ${worst.seconds} s; by the clock ${tasks} tasks over 50 ms, longest frame ` +
				`${longest.toFixed(0)} ms; heap ${mean(heaps.slice(0, quarter)).toFixed(2)} MB in the first ` +
				`quarter, ${mean(heaps.slice(-quarter)).toFixed(2)} in the last; ` +
				`${((received - bytes) / time / 1000).toFixed(0)} kB/s, ${after.Nodes - before.Nodes} nodes more`,
		);
	}
}

await (seconds > 0 ? measure() : counts());
assert.deepEqual(errors, []);
await browser.close();
await server.close();
process.exit(0);
