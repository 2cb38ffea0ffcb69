// What the assembly expects of the modules: lines that can be dropped, names that are declared once.
import assert from "node:assert/strict";

/** Checks the modules of the page and of its worker. */
export function checkSources({ PAGE, WORKER, moduleText, stripped, readCodes }, codes) {
  for (const names of [PAGE, WORKER]) checkModules(names.map(moduleText));
  for (const text of PAGE.map(moduleText)) assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function/);
  assert.equal(stripped("// a\nimport { b } from './c.js';\n  export const d = 1;\n"), "const d = 1;\n");
  const read = readCodes(codes);
  assert.ok(Object.keys(read).length > 60 && read["car/hash"][1].startsWith("Download it again"));
}

function checkModules(texts) {
  const declared = new Set();
  for (const text of texts) {
    for (const line of text.split("\n")) {
      const opened = line.trimStart().startsWith("/*") && !line.trimEnd().endsWith("*/");
      assert.ok(!opened && (line.match(/`/g) ?? []).length % 2 === 0, `a comment or a text goes on: ${line}`);
      const [, imported] = /^import \{([^}]*)\}/.exec(line) ?? [];
      for (const name of imported?.split(",") ?? []) assert.ok(declared.has(name.trim()), `${name} is imported before it is declared`);
    }
    for (const [, name] of text.matchAll(/^(?:export )?(?:async )?(?:function|const|let|class) (\w+)/gm)) {
      assert.ok(!declared.has(name), `${name} is declared twice`);
      declared.add(name);
    }
  }
}
