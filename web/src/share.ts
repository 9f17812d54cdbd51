// A flow's page as one file, which takes nothing from elsewhere: the page itself, with what it knows in it.

import { save } from "./save";
import type { FlowDetail } from "./schema";

/** What such a file has. */
export interface Saved {
	/** Wall clock, as ISO 8601 has it. */
	saved_at: string;
	flow: FlowDetail;
	/** What it is compared with. */
	other: FlowDetail | null;
	/** Seconds since the first data that are pointed at. */
	moment: number | null;
}

/** Where such a file has it. */
const ID = "saved";

/** What this document was saved with; `null`: it comes from a server. */
export function savedHere(): Saved | null {
	const text = document.getElementById(ID)?.textContent;
	return text ? (JSON.parse(text) as Saved) : null;
}

const POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src blob: data:";

export async function share(title: string, saved: Saved): Promise<void> {
	const [style, script] = await Promise.all(["/app.css", "/app.js"].map(part));
	const data = JSON.stringify(saved).replaceAll("<", "\\u003c");
	const document = [
		"<!doctype html>",
		'<html lang="en">',
		"<head>",
		'<meta charset="utf-8">',
		'<meta name="viewport" content="width=device-width, initial-scale=1">',
		'<meta name="color-scheme" content="light dark">',
		`<meta http-equiv="Content-Security-Policy" content="${POLICY}">`,
		"<title>onramp</title>",
		`<style>${style}</style>`,
		"</head>",
		"<body>",
		'<header id="bar"></header>',
		'<main id="main" tabindex="-1"><noscript>This document needs JavaScript.</noscript></main>',
		'<div id="say" role="status" aria-live="polite"></div>',
		`<script type="application/json" id="${ID}">${data}</script>`,
		`<script>${script?.replaceAll("</script", "<\\/script")}</script>`,
		"</body>",
		"</html>",
		"",
	];
	save(`${title}.html`, new Blob([document.join("\n")], { type: "text/html" }));
}

/** A part of the page as the server has it. */
async function part(path: string): Promise<string> {
	const response = await fetch(path);
	if (!response.ok) throw new Error(`the server has no ${path} any more: ${response.status}`);
	return response.text();
}
