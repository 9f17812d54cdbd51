// Builds the page into dist/: one script, one style sheet, one document. And the lab's document, which holds all of it.
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const options = { bundle: true, minify: true, target: "es2022", legalComments: "eof", logLevel: "warning" };

await mkdir("dist/lab", { recursive: true });
await build({ ...options, entryPoints: ["src/app.ts", "src/app.css"], outdir: "dist" });
for (const name of ["index.html", "icon.svg"]) await copyFile(`src/${name}`, `dist/${name}`);

const parts = { ...options, outdir: "dist", write: false };
const { outputFiles } = await build({ ...parts, entryPoints: ["src/lab.ts", "src/app.css"] });
const part = (end) => outputFiles.find(({ path }) => path.endsWith(end)).text;
const template = await readFile("src/lab.html", "utf8");
// By functions, for what is put in may have signs that mean something in a replacement.
const text = template
	.replace("/*style*/", () => part(".css"))
	.replace("/*script*/", () => part(".js").replaceAll("</script", "<\\/script"));
await writeFile("dist/lab/results.html", text);
