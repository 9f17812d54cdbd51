// A flow's past by columns, as the server keeps it: numbered buckets, of which the last may still grow.

import { COLUMNS, type Column } from "./api";
import type { Past as Change } from "./schema";

export class Past {
	private generation = -1;
	/** Number of the first bucket here. */
	private oldest = 0;
	readonly columns: Record<Column, (number | null)[]>;

	constructor() {
		this.columns = Object.fromEntries(COLUMNS.map((name) => [name, []])) as unknown as Record<
			Column,
			(number | null)[]
		>;
	}

	get length(): number {
		return this.columns.at_us.length;
	}

	/** All of it, as one that knows nothing takes it. */
	whole(): Change {
		const { generation, oldest, columns } = this;
		return { generation, oldest, first: oldest, until_us: [], ...columns } as Change;
	}

	/** Takes over what is new. */
	take(change: Change): void {
		const end = this.oldest + this.length;
		const anew = change.generation !== this.generation || change.first > end || change.first < this.oldest;
		const keep = anew ? 0 : change.first - this.oldest;
		if (anew) this.oldest = change.first;
		this.generation = change.generation;
		const gone = Math.max(0, change.oldest - this.oldest);
		for (const name of COLUMNS) {
			const column = this.columns[name];
			column.length = keep;
			for (const value of change[name]) column.push(value);
			column.splice(0, gone);
		}
		this.oldest += gone;
	}
}
