// A document of the lab: results next to each other or a report, which stand in the document.

import { h } from "./dom";
import { type Report, reportView } from "./report";
import { type Opened, resultsView } from "./results";
import { apply } from "./theme";

interface Shown {
	results?: Opened[];
	report?: { name: string; json: Report };
}

const main = document.getElementById("main") as HTMLElement;
const shown: Shown = JSON.parse(document.getElementById("data")?.textContent ?? "{}");
document.getElementById("bar")?.append(h("span", { class: "brand" }, "onramp-lab"));
apply();
if (shown.report) {
	main.className = "report";
	reportView(main, shown.report.name, shown.report.json);
} else {
	main.className = "results";
	resultsView(main, shown.results ?? []);
}
