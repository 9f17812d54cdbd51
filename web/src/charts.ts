// Charts that belong together.

import type { Chart } from "./chart";

export class Charts<Name extends string> {
	readonly elements: HTMLElement[];

	constructor(protected readonly charts: Record<Name, Chart>) {
		this.elements = this.all().map((chart) => chart.element);
	}

	private all(): Chart[] {
		return Object.values<Chart>(this.charts);
	}

	/** What happens when a moment is clicked. */
	onPick(pick: (x: number) => void): void {
		for (const chart of this.all()) chart.onPick = pick;
	}

	forget(): void {
		for (const chart of this.all()) chart.forget();
	}

	destroy(): void {
		for (const chart of this.all()) chart.destroy();
	}
}
