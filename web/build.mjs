// Builds the page into dist/: one script, one style sheet, one document.
import { copyFile, mkdir } from "node:fs/promises";
import { build } from "esbuild";

await mkdir("dist", { recursive: true });
await build({
	entryPoints: ["src/app.ts", "src/app.css"],
	bundle: true,
	minify: true,
	target: "es2022",
	legalComments: "eof",
	outdir: "dist",
	logLevel: "warning",
});
for (const name of ["index.html", "icon.svg"]) await copyFile(`src/${name}`, `dist/${name}`);
