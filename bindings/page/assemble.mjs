// Assembles the page: `node assemble.mjs MODULE.js MODULE.wasm CODES.md VERSION OUT`.
//
// The modules become one script without imports, comments and indentation, the rest is data in the page. The policy has the
// hashes of the script and of the style, and allows nothing else to run.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

/** In the order of their imports. */
export const PAGE = ["dom", "cid", "forms", "list", "hex", "work", "chain", "repository", "tree", "refusal", "verdict", "records", "views", "messages", "requests", "main"];
export const WORKER = ["engine", "worker"];

const here = dirname(fileURLToPath(import.meta.url));

/** The text of a module of the page. */
export const moduleText = (name) => readFileSync(join(here, "js", `${name}.js`), "utf8");

/** A module without imports, comments and indentation. */
export function stripped(text) {
  const isKept = (line) => line !== "" && !/^(import |export \{|\/\/|\/\*\*|\* |\*\/)/.test(line);
  const lines = text.split("\n").map((line) => line.trim()).filter(isKept);
  return `${lines.map((line) => line.replace(/^export /, "")).join("\n")}\n`;
}

/** The codes with their meaning and what to do, from the tables of the document. */
export function readCodes(document) {
  const rows = document.matchAll(/^\| `([^`|]+)` \| ([^|]+) \| ([^|]+) \|$/gm);
  return Object.fromEntries([...rows].map(([, code, ...texts]) => [code, texts.map((text) => text.replaceAll("`", "").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1"))]));
}

/** The same JSON without characters that could end a script or begin a comment. */
const withoutMarkup = (json) => json.replace(/[<>&]/g, (character) => `\\u00${character.charCodeAt(0).toString(16)}`);

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The page of a module's JavaScript, a module and a document of codes. */
export function assemble({ glue, module, codes, version }) {
  const style = readFileSync(join(here, "page.css"), "utf8");
  const script = `"use strict";\n(() => {\n${PAGE.map((name) => stripped(moduleText(name))).join("")}})();\n`;
  const worker = `"use strict";\n${stripped(glue)}${WORKER.map((name) => stripped(moduleText(name))).join("")}`;
  const policy = `default-src 'none'; script-src ${hash(script)} 'wasm-unsafe-eval'; style-src ${hash(style)}; worker-src blob:; connect-src https:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types worker`;
  const wasm = gzipSync(module, { level: 9 }).toString("base64");
  for (const text of [script, worker, style]) {
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error("a script or style must not contain its end");
  }
  const parts = { policy, style, script, worker, wasm, version, codes: withoutMarkup(JSON.stringify(readCodes(codes))) };
  return readFileSync(join(here, "page.html"), "utf8").replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [glue, module, codes, version, out] = process.argv.slice(2);
  const page = assemble({ glue: readFileSync(glue, "utf8"), module: readFileSync(module), codes: readFileSync(codes, "utf8"), version });
  writeFileSync(out, page);
  console.log(`${out}: ${page.length} bytes`);
}
