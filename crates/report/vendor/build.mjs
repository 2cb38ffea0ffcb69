// Makes what the report page holds of Observable Plot, and says the hash of the script for README.md.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const { metafile } = await build({
  entryPoints: ["plot.entry.js"],
  outfile: "plot.min.js",
  bundle: true,
  minify: true,
  format: "iife",
  globalName: "Plot",
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
});

writeFileSync("plot.licences.txt", licences(packages(Object.keys(metafile.inputs))));
writeFileSync("plot.style.css", style());
console.log(createHash("sha256").update(readFileSync("plot.min.js")).digest("hex"));

/** The folders of the packages that these files are of. */
function packages(files) {
  const folder = (file) => file.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0];
  return [...new Set(files.map(folder).filter(Boolean))].sort();
}

/** Each different licence once, behind the packages that it is of. */
function licences(folders) {
  const texts = new Map();
  for (const folder of folders) {
    const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
    const file = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
    if (!file || !existsSync(`${folder}/${file}`)) throw new Error(`${folder} has no licence`);
    const text = readFileSync(`${folder}/${file}`, "utf8").trim();
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  return [...texts].map(([text, names]) => `${names.join(", ")}\n\n${text}\n`).join(`\n${"-".repeat(40)}\n\n`);
}

/** What Plot puts into a chart whose class is `distribution`. */
function style() {
  const source = readFileSync("node_modules/@observablehq/plot/src/plot.js", "utf8");
  const [, text] = source.match(/append\("style"\)[\s\S]*?`([\s\S]*?)`/);
  return text.replaceAll("${className}", "distribution");
}
