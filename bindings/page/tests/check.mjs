// Checks all claims, takes the screenshots and measures: `node check.mjs CHROMIUM PAGE INPUTS SHOTS ASSEMBLE`.
import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { give, Inputs, open, settled } from "./browser.mjs";
import { claims } from "./claims.mjs";
import { checkSources } from "./sources.mjs";
import { verdicts } from "./verdicts.mjs";

const [executablePath, file, folder, shots, assemble] = process.argv.slice(2);
const only = process.env.WIREPROOF_CLAIM ?? "";
const inputs = new Inputs(folder);
// A container has no rights to make a sandbox of its own; the page is our own file.
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
let failed = 0;
let passed = 0;

async function run(claim, check) {
  if (!claim.includes(only)) return;
  try {
    await check();
    passed += 1;
  } catch (fault) {
    failed += 1;
    console.error(`${claim}: ${fault.message}`);
  }
}

const codes = join(dirname(assemble), "../../docs/formats/codes.md");
await run("the modules can be assembled", async () => checkSources(await import(pathToFileURL(assemble)), await readFile(codes, "utf8")));
for (const [claim, check] of Object.entries({ ...claims, ...verdicts(inputs) })) {
  await run(claim, async () => {
    const tab = await open(browser, file, inputs);
    await check(tab).finally(tab.close);
  });
}
if (only === "") {
  await shoot();
  await picture();
  await measure();
}
await browser.close();
console.log(`the page in a browser: ${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;

/** A picture of results on a phone and a desktop, light and dark. */
async function shoot() {
  await mkdir(shots, { recursive: true });
  for (const [screen, width] of Object.entries({ phone: 390, desk: 1280 })) {
    for (const colorScheme of ["light", "dark"]) {
      const tab = await open(browser, file, inputs, { viewport: { width, height: 844 }, colorScheme });
      const shot = (name) => tab.page.screenshot({ path: join(shots, `${name}-${screen}-${colorScheme}.png`), fullPage: true });
      await shot("start");
      for (const name of ["log.json", "repository.car", "tree-key.car", "signature.car", "events-broken.jsonl", "frame.bin", "chain-hash.bin", "record.car", "range.car"].filter((name) => inputs.entry(name))) {
        await give(tab, name, name === "repository.car" ? { key: "" } : undefined);
        const row = tab.page.locator("[role=option]").nth(3);
        if (await row.count()) await row.click();
        await settled(tab.page);
        await tab.page.evaluate(() => scrollTo(0, 0));
        await shot(name.split(".")[0]);
      }
      await tab.close();
    }
  }
}

/** The picture for the README: a look-up from a handle to its repository, and the proof path of a record. */
async function picture() {
  const tab = await open(browser, file, inputs, { viewport: { width: 1000, height: 900 } });
  const { page } = tab;
  await page.fill("#name", inputs.handle);
  await page.keyboard.press("Enter");
  for (const index of [0, 1, 2]) {
    await page.locator("#request-list li").nth(index).locator("button").click();
    await page.locator("#request-list li.done").nth(index).waitFor();
  }
  await page.locator("[role=option]").nth(8).click();
  await page.fill("input[type=search]", "feed.post");
  await page.locator("[role=option]").nth(2).click();
  await settled(page);
  await page.evaluate(() => {
    document.activeElement.blur();
    scrollTo(0, 0);
  });
  const top = await page.locator(".verdict").boundingBox();
  const bottom = await page.locator(".card:has(.tree)").boundingBox();
  const clip = { x: 0, y: top.y - 16, width: 1000, height: bottom.y + bottom.height - top.y + 32 };
  await page.screenshot({ path: join(shots, "picture.png"), fullPage: true, clip });
  await tab.close();
}

/** Prints the times of opening and of a proof of 10,000 records: the best of five, on one core where `taskset` starts this. */
async function measure() {
  const opened = [];
  const proved = [];
  for (let round = 0; round < 5; round += 1) {
    const tab = await open(browser, file, inputs);
    const paint = await tab.page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    opened.push(Math.max(await paint.jsonValue(), await tab.page.evaluate(() => performance.getEntriesByType("navigation")[0].loadEventEnd)));
    await settled(tab.page);
    const started = Date.now();
    await give(tab, "repository-10000.car");
    proved.push([Date.now() - started, await tab.page.textContent(".facts li:last-child")]);
    await tab.close();
  }
  console.log(`opened in ${Math.min(...opened).toFixed(0)} ms; 10,000 records shown after ${proved.map(([time]) => time).join(", ")} ms (${proved[0][1]})`);
}
