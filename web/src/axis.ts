// Whether windows have a logarithmic axis, on which doubling is a straight line. It is kept in the browser.

import { h } from "./dom";

const KEY = "onramp-axis";

export const logarithmic = (): boolean => localStorage.getItem(KEY) !== "linear";

/** Changes it, and has the charts drawn anew. */
export function axisButton(redraw: () => void): HTMLElement {
	const button = h(
		"button",
		{
			type: "button",
			title: "Windows on a logarithmic axis: doubling is a straight line",
			"aria-pressed": String(logarithmic()),
			click: () => {
				localStorage.setItem(KEY, logarithmic() ? "linear" : "logarithmic");
				button.setAttribute("aria-pressed", String(logarithmic()));
				redraw();
			},
		},
		"Logarithmic",
	);
	return h("div", { class: "scopes" }, button);
}
