// Recordings that are dropped on the page or chosen: they go to this server, which keeps them in memory.

import { post } from "./api";
import { fill, h, say } from "./dom";
import * as source from "./source";

/** What the server takes at most, bytes. */
const MOST = 64 << 20;

interface Named {
	/** With the directories that it was in. */
	path: string;
	file: File;
}

interface Opened {
	recording: string;
	flows: number;
	flow?: string;
	problems: string[];
}

/** What is open, for the line above the views; by the recording's name at the server. */
interface Held {
	name: string;
	flows: number;
	problems: string[];
}
const held = new Map<string, Held>();

/** All files of what was dropped, directories gone through. */
async function entries(dropped: DataTransfer): Promise<Named[]> {
	const found: Named[] = [];
	const visit = async (entry: FileSystemEntry): Promise<void> => {
		if (entry.isFile) {
			found.push({
				path: entry.fullPath.replace(/^\//, ""),
				file: await new Promise((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject)),
			});
			return;
		}
		const reader = (entry as FileSystemDirectoryEntry).createReader();
		for (;;) {
			// It gives a hundred at a time.
			const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
			if (some.length === 0) return;
			for (const one of some) await visit(one);
		}
	};
	// They are gone after the first pause.
	const all = [...dropped.items].map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
	for (const one of all) {
		if (one instanceof File) found.push({ path: one.name, file: one });
		else if (one) await visit(one);
	}
	return found;
}

const directory = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

async function take(files: Named[]): Promise<void> {
	if (files.length === 0) return;
	say("Opening …");
	const tables = files.filter(({ path }) => path.endsWith(".parquet"));
	const logs = files.filter(({ path }) => /\.s?qlog$/.test(path));
	const sheets = files.filter(({ path }) => path.endsWith(".csv"));
	const recorded = [];
	for (const sheet of sheets)
		if (
			(await sheet.file.slice(0, 2000).text()).split("\n")[0]?.includes("cwnd_segments") &&
			!/(^|\/)flow(-[^/]*)?\.csv$/.test(sheet.path)
		)
			recorded.push(sheet);
	if (tables.length > 0) return send([...tables, ...files.filter(({ path }) => /(^|\/)manifest\.json$/.test(path))]);
	if (recorded.length > 0) return send(recorded.slice(0, 1));
	if (logs[0])
		throw new Error(
			`${logs[0].path} is qlog, which keeps too little of acknowledgments to ask algorithms about them: ` +
				"open the recording that it was exported from.",
		);
	const can =
		"Drop the directory of a recording, or its .parquet files, or acknowledgments as .csv. Results of the lab, " +
		"and reports of replay and shadow, are shown by onramp-lab plot FILE -o page.html.";
	// The server looks at the first bytes, and says what it is.
	if (files.length === 1) {
		try {
			return await send(files);
		} catch (error) {
			throw new Error(`${(error as Error).message}. ${can}`);
		}
	}
	throw new Error(
		`Nothing here can be opened (${files
			.map(({ path }) => path)
			.slice(0, 3)
			.join(", ")}${files.length > 3 ? ", …" : ""}). ${can}`,
	);
}

/** Has the server read a recording. */
async function send(files: Named[]): Promise<void> {
	const bytes = files.reduce((sum, { file }) => sum + file.size, 0);
	if (bytes > MOST)
		throw new Error(
			`These are ${bytes >> 20} MB, at most ${MOST >> 20} MB are read here. onramp replay takes ` +
				"recordings of any size.",
		);
	const form = new FormData();
	for (const { path, file } of files) form.append("file", file, path);
	const opened = await post<Opened>("/api/recordings", form);
	source.choose(opened.recording);
	const name =
		directory(files[0]?.path ?? "").replace(/\/$/, "") ||
		(files.length === 1 ? (files[0]?.path ?? "") : `A recording in ${files.length} files`);
	held.set(opened.recording, { name, flows: opened.flows, problems: opened.problems });
	say(`Opened ${name}: ${opened.flows} flows`);
	location.hash = source.address(opened.flow ? `flow/${opened.flow}` : "flows");
}

function wrong(error: unknown): void {
	const dialog = h(
		"dialog",
		{ role: "alertdialog", "aria-labelledby": "open-wrong" },
		h("h2", { id: "open-wrong" }, "This could not be opened"),
		h("p", {}, error instanceof Error ? error.message : String(error)),
		h("form", { method: "dialog", class: "actions" }, h("button", { class: "main" }, "Close")),
	);
	dialog.addEventListener("close", () => dialog.remove());
	document.body.append(dialog);
	dialog.showModal();
}

/** Opening something waits, and shows what went wrong. */
async function attempt(files: Promise<Named[]>): Promise<void> {
	document.body.classList.add("opening");
	try {
		await take(await files);
	} catch (error) {
		wrong(error);
	} finally {
		document.body.classList.remove("opening");
	}
}

/** Asks for files or a directory. */
export function ask(): void {
	const input = (whole: boolean): HTMLInputElement => {
		const one = h("input", {
			type: "file",
			multiple: true,
			class: "hidden",
			webkitdirectory: whole,
			tabindex: "-1",
			"aria-label": whole ? "A directory" : "Files",
		});
		one.addEventListener("change", () => {
			const files = [...(one.files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
			dialog.close();
			void attempt(Promise.resolve(files));
		});
		return one;
	};
	const [whole, some] = [input(true), input(false)];
	const dialog = h(
		"dialog",
		{ "aria-labelledby": "open-title" },
		h("h2", { id: "open-title" }, "Open"),
		h(
			"p",
			{},
			"A recording of onramp record, or acknowledgments as CSV. Dropping it anywhere on this page does the same.",
		),
		h(
			"p",
			{ class: "quiet" },
			"A recording goes to this server, which keeps it in memory for everyone who knows its address, until it " +
				"ends or four newer ones are there.",
		),
		h(
			"p",
			{ class: "actions" },
			h("button", { type: "button", class: "main", click: () => whole.click() }, "A directory"),
			h("button", { type: "button", click: () => some.click() }, "Files"),
			h("button", { type: "button", click: () => dialog.close() }, "Cancel"),
			whole,
			some,
		),
	);
	dialog.addEventListener("close", () => dialog.remove());
	document.body.append(dialog);
	dialog.showModal();
}

/** Listens for what is dropped. */
export function listen(): void {
	const veil = h("div", { class: "veil", "aria-hidden": "true" }, h("p", {}, "Drop a recording"));
	document.body.append(veil);
	let depth = 0;
	const over = (by: number): void => {
		depth = Math.max(0, depth + by);
		document.body.classList.toggle("dropping", depth > 0);
	};
	const files = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;
	window.addEventListener("dragenter", (event) => files(event) && over(1));
	window.addEventListener("dragleave", (event) => files(event) && over(-1));
	window.addEventListener("dragover", (event) => files(event) && event.preventDefault());
	window.addEventListener("drop", (event) => {
		if (!event.dataTransfer || !files(event)) return;
		event.preventDefault();
		depth = 0;
		over(0);
		void attempt(entries(event.dataTransfer));
	});
}

/** The line that says whose flows these are, where flows are shown. */
export function banner(place: HTMLElement): void {
	const open = source.recording() !== "";
	place.hidden = !open;
	if (!open) return;
	const known = held.get(source.recording());
	const problems = known?.problems ?? [];
	fill(
		place,
		h(
			"span",
			{},
			h("strong", {}, known ? known.name : "A recording"),
			known ? `: ${known.flows} flow${known.flows === 1 ? "" : "s"}, recorded` : ", opened before",
		),
		problems.length > 0 &&
			h(
				"details",
				{},
				h("summary", {}, `${problems.length} problem${problems.length === 1 ? "" : "s"}`),
				h("ul", {}, ...problems.map((one) => h("li", {}, one))),
			),
		h("button", { type: "button", click: close }, source.isLive() ? "Back to live flows" : "Close"),
	);
}

function close(): void {
	source.choose("");
	location.hash = "#/flows";
}
