// Makes src/schema.ts, the types of the API, of the schemas in its document, which comes by stdin.
import { readFileSync, writeFileSync } from "node:fs";

const { components } = JSON.parse(readFileSync(0, "utf8"));

/** In parentheses where it is several, so that something can follow. */
const grouped = (type) => (/ [|&] /.test(type) ? `(${type})` : type);

function one(kind, schema) {
	if (kind === "integer" || kind === "number") return "number";
	if (kind === "array") {
		const item = typeOf(schema.items);
		return schema.maxItems ? `[${Array(schema.maxItems).fill(item).join(", ")}]` : `${grouped(item)}[]`;
	}
	if (kind !== "object") return kind;
	if (!schema.properties) return `Record<string, ${typeOf(schema.additionalProperties)}>`;
	const required = new Set(schema.required);
	const field = ([name, value]) => `${name}${required.has(name) ? "" : "?"}: ${typeOf(value)};`;
	const fields = Object.entries(schema.properties).map(field);
	return fields.length > 0 ? `{ ${fields.join(" ")} }` : "Record<string, never>";
}

function typeOf(schema) {
	const { $ref: reference, allOf, oneOf, anyOf, ...own } = schema;
	if (reference) return reference.split("/").at(-1);
	if (allOf) return [...allOf, own].map((part) => grouped(typeOf(part))).join(" & ");
	if (oneOf ?? anyOf) return (oneOf ?? anyOf).map(typeOf).join(" | ");
	if (own.const !== undefined || own.enum)
		return (own.enum ?? [own.const]).map((value) => JSON.stringify(value)).join(" | ");
	return [own.type]
		.flat()
		.map((kind) => one(kind, own))
		.join(" | ");
}

const types = Object.entries(components.schemas).map(([name, schema]) => `export type ${name} = ${typeOf(schema)};\n`);
writeFileSync("src/schema.ts", `// Made by types.mjs.\n\n${types.join("\n")}`);
