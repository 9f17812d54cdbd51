// The secret that writing takes: asked for once, kept in this page's memory only.

import { Refused } from "./api";
import { h } from "./dom";

let secret = "";

export function forget(): void {
	secret = "";
}

/** What is said of something that failed; a wrong secret is asked for again next time. */
export function said(error: unknown): string {
	if (error instanceof Refused && error.status === 401) forget();
	return error instanceof Error ? error.message : String(error);
}

/** The secret; asked for if it is not known, unless `ask` is false. */
export async function token(ask = true): Promise<string> {
	if (secret || !ask) return secret;
	return new Promise((resolve) => {
		const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
		const dialog = h(
			"dialog",
			{ "aria-labelledby": "token-title" },
			h(
				"form",
				{ method: "dialog", submit: () => (secret = input.value.trim()) },
				h("h2", { id: "token-title" }, "Token"),
				h("p", {}, "Changing something takes the secret in the file of --write-token-file. It stays in this page's memory."),
				h("label", { for: "token" }, "Token"),
				input,
				h("p", { class: "actions" }, h("button", { class: "main" }, "Use it"), h("button", { type: "button", click: () => dialog.close() }, "Cancel")),
			),
		);
		dialog.addEventListener("close", () => {
			dialog.remove();
			resolve(secret);
		});
		document.body.append(dialog);
		dialog.showModal();
	});
}
