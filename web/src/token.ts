// The secrets that reading and writing take: asked for once, kept in this page's memory only.

import { Refused } from "./api";
import { h } from "./dom";

export type Deed = "read" | "write";

const secrets: Record<Deed, string> = { read: "", write: "" };
const asked: Partial<Record<Deed, Promise<string>>> = {};
/** Whether the server has refused the secret that was given. */
const refused: Record<Deed, boolean> = { read: false, write: false };
const WHY: Record<Deed, string> = {
	read: "Reading here takes the secret in the file of --read-token-file.",
	write: "Changing something takes the secret in the file of --write-token-file.",
};

export function forget(): void {
	for (const deed of ["read", "write"] as const) {
		secrets[deed] = "";
		refused[deed] = false;
	}
}

/** The server has refused a request: if that had a secret, the next question says so. */
function refuse(deed: Deed): void {
	refused[deed] ||= secrets[deed] !== "";
	secrets[deed] = "";
}

/** What is said of something that failed; a wrong secret of writing is asked for again next time. */
export function said(error: unknown): string {
	if (error instanceof Refused && error.status === 401) refuse("write");
	return error instanceof Error ? error.message : String(error);
}

/** Headers with the secret of reading, if it is known. */
export const reading = (): Record<string, string> => (secrets.read ? { Authorization: `Bearer ${secrets.read}` } : {});

/** Asks for the secret of reading again, because `wrong` was none; whether another one is known now. */
export async function askedAgain(wrong: Record<string, string>): Promise<boolean> {
	// Another request may have asked in the meantime.
	if (reading().Authorization === wrong.Authorization) {
		refuse("read");
		await secret("read");
	}
	return secrets.read !== "";
}

/** A secret; asked for if it is not known, unless `ask` is false. */
async function secret(deed: Deed, ask = true): Promise<string> {
	if (secrets[deed] || !ask) return secrets[deed];
	asked[deed] ??= dialog(deed).finally(() => delete asked[deed]);
	return asked[deed];
}

/** The secret of writing. */
export const token = async (ask = true): Promise<string> => secret("write", ask);

function dialog(deed: Deed): Promise<string> {
	return new Promise((resolve) => {
		const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true });
		const dialog = h(
			"dialog",
			{ "aria-labelledby": "token-title" },
			h(
				"form",
				{ method: "dialog", submit: () => (secrets[deed] = input.value.trim()) },
				h("h2", { id: "token-title" }, "Token"),
				refused[deed] &&
					h("p", { class: "wrong", role: "alert" }, "The server has refused the token that was given."),
				h("p", {}, `${WHY[deed]} It stays in this page's memory.`),
				h("label", { for: "token" }, "Token"),
				input,
				h(
					"p",
					{ class: "actions" },
					h("button", { class: "main" }, "Use it"),
					h("button", { type: "button", click: () => dialog.close() }, "Cancel"),
				),
			),
		);
		dialog.addEventListener("close", () => {
			dialog.remove();
			resolve(secrets[deed]);
		});
		document.body.append(dialog);
		dialog.showModal();
	});
}
