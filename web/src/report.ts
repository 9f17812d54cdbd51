// Reports of `onramp replay --json` and `onramp shadow --json`: what algorithms would have done with each flow.

import { fill, h } from "./dom";
import { othersView, type Said } from "./others";
import type { Flow, Shadow } from "./schema";

interface Reported {
	local?: string | null;
	remote?: string | null;
	flow?: number;
	algorithm?: string | null;
	congestion_control?: string;
	/** As `replay` says it, and as `shadow` does. */
	recorded_exit?: Flow["exit"];
	exit?: Flow["exit"];
	regret?: Flow["regret"];
	given?: Shadow["given"];
	findings: Said["findings"];
}

/** Flows that are shown. */
const MOST = 200;

export interface Report {
	flows: Reported[];
}

export function reportView(main: HTMLElement, title: string, { flows }: Report): void {
	fill(
		main,
		h("h1", {}, `Report ${title}`),
		h("p", { class: "summary" }, `${flows.length} flows${flows.length > MOST ? `, the first ${MOST} here` : ""}.`),
		...flows.slice(0, MOST).map((flow) => {
			const place = h("section", { class: "card others" });
			const ran = flow.algorithm ?? flow.congestion_control ?? "unknown";
			othersView(
				place,
				{ algorithm: ran, exit: flow.recorded_exit ?? flow.exit ?? null, regret: flow.regret ?? null } as Flow,
				{ given: flow.given ?? null, findings: flow.findings },
			);
			const head = place.querySelector("h2");
			const local = flow.local ?? `flow ${flow.flow ?? ""}`;
			const remote = flow.remote ? ` → ${flow.remote}` : "";
			if (head) head.textContent = `${local}${remote}, ran ${ran}`;
			return place;
		}),
	);
}
