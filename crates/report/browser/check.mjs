// Checks all claims on each page: `node check.mjs CHROMIUM SHOTS PAGE…`
import { basename, dirname } from "node:path";
import { chromium } from "playwright-core";
import { open } from "./browser.mjs";
import { claims } from "./claims.mjs";
import { shoot } from "./shots.mjs";

const [executablePath, shots, ...files] = process.argv.slice(2);
// A container has no rights to make a sandbox of its own; the page is our own file.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
let failed = 0;
let passed = 0;
for (const file of files) {
  const name = basename(dirname(file));
  for (const [claim, check] of Object.entries(claims)) {
    const tab = await open(browser, file);
    try {
      await check(tab);
      passed += 1;
    } catch (fault) {
      failed += 1;
      console.error(`${name}: ${claim}: ${fault.message}`);
    }
    await tab.close();
  }
  await shoot(browser, file, shots, name);
}
await browser.close();
console.log(`report in a browser: ${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
