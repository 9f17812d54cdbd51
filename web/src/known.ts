// What is known of one flow, of a server or of a file that was saved: as it is now, and its past.

import { Past } from "./past";
import type { Past as Change, FlowDetail, Incident, Shadow } from "./schema";

export type Scope = "beginning" | "recent" | "life";

export class Known {
	readonly pasts: Record<Scope, Past> = { beginning: new Past(), recent: new Past(), life: new Past() };
	readonly incidents: Incident[] = [];
	shadow: Shadow | null = null;
	detail: FlowDetail | null = null;

	take(next: FlowDetail): void {
		const take = (name: Scope, change: Change | null): void => {
			if (change) this.pasts[name].take(change);
		};
		take("beginning", next.beginning);
		take("life", next.life);
		take("recent", next.recent);
		this.incidents.splice(next.incidents_from, Infinity, ...next.incidents);
		this.shadow = next.shadow ?? this.shadow;
		this.detail = next;
	}

	/** What is worth seeing first: the slow start where it was seen, else all there is. */
	scope(): Scope {
		if (!this.detail) return "life";
		const { exit, started_us: started, state } = this.detail;
		const first = this.pasts.beginning.columns.at_us[0];
		const seen = first != null && (!exit || first <= started + exit.since_start_us);
		return seen && state !== "adopted" ? "beginning" : "life";
	}

	/** All of it, as one that knows nothing takes it. */
	whole(): FlowDetail | null {
		return (
			this.detail && {
				...this.detail,
				beginning: this.pasts.beginning.whole(),
				life: this.pasts.life.whole(),
				recent: this.detail.recent && this.pasts.recent.whole(),
				incidents_from: 0,
				incidents: this.incidents,
				...(this.shadow ? { shadow: this.shadow } : {}),
			}
		);
	}
}
