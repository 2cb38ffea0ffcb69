// The claims that must be true of a page. Each gets the page after loading.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export const claims = {
  "loads under its policy without a word and without a request": async ({ page, said, others }) => {
    await openEverything(page);
    assert.deepEqual(said, []);
    assert.deepEqual(others(), []);
    assert.equal(await page.title(), "Wireproof benchmark");
    assert.match(await page.getAttribute("meta[http-equiv]", "content"), /^default-src 'none'; script-src 'sha256-/);
  },

  "refuses a script that is not its own": async ({ page, said }) => {
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.textContent = "document.title = 'run'";
      document.body.append(script);
    });
    assert.equal(await page.title(), "Wireproof benchmark");
    assert.equal(said.length, 1);
  },

  "shows what peers answer as text": async ({ page }) => {
    await openEverything(page);
    assert.equal(await page.locator("img, iframe, main script").count(), 0);
    assert.equal(await page.title(), "Wireproof benchmark");
  },

  "is laid out within a second, before any table is opened": async ({ page }) => {
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
    const { laidOut, elements } = await page.evaluate(() => ({
      laidOut: performance.getEntriesByName("first-contentful-paint")[0].startTime,
      elements: document.querySelectorAll("body *").length,
    }));
    assert.ok(laidOut <= 1000 * patience, `${laidOut} ms`);
    assert.ok(elements <= 6000, `${elements} elements`);
    assert.equal(await page.locator("tr[data-row]").count(), 0);
  },

  "the rows of a task are shown when they are opened, each with every pass": async ({ page }) => {
    const { rows, passes } = await firstTask(page);
    await openRows(page);
    const table = page.locator("table.all").first();
    assert.equal(await table.locator("tr[data-row]").count(), rows);
    assert.equal(await table.locator("circle").count(), passes);
  },

  "choices hide the rows that they exclude, and are taken back": async ({ page }) => {
    const all = await page.textContent("#shown");
    const language = await page.locator("#language option").nth(1).getAttribute("value");
    await page.selectOption("#language", { index: 1 });
    assert.ok((await shown(page)) > 0);
    const texts = await page.locator("tr[data-row]:visible .version").allTextContents();
    assert.ok(texts.every((text) => text.startsWith(language)), language);
    assert.match(await page.textContent("#shown"), / of /);
    await page.click("#tools button[type=reset]");
    await page.waitForFunction((all) => document.querySelector("#shown").textContent === all, all);
    await page.fill("#variant", "no such row at all");
    assert.equal(await shown(page), 0);
    assert.match(await page.textContent("#shown"), /^0 of /);
  },

  "the address holds the choices, and shows them again": async ({ page }) => {
    await page.selectOption("#language", { index: 1 });
    const peer = await page.locator("#baseline option").nth(1).getAttribute("value");
    await page.selectOption("#baseline", peer);
    await page.fill("#variant", "e");
    const seen = [await page.textContent("#shown"), await shown(page)];
    const address = page.url();
    assert.match(address, /#\?variant=e&language=/);
    const other = await page.context().newPage();
    await other.goto(address);
    assert.deepEqual([await other.textContent("#shown"), await shown(other)], seen);
    assert.equal(await other.inputValue("#baseline"), peer);
    await other.click("#tools button[type=reset]");
    await other.waitForFunction(() => location.hash === "");
    await other.close();
  },

  "an address with choices that the page does not offer shows all rows": async ({ page }) => {
    const all = await page.textContent("#shown");
    await page.goto(`${page.url()}#?language=esperanto&threads=x`);
    assert.equal(await page.textContent("#shown"), all);
  },

  "a link to a closed part opens it": async ({ page }) => {
    const folded = page.locator("details.task");
    if ((await folded.count()) === 0) return;
    const id = await folded.first().getAttribute("id");
    await page.evaluate((id) => (location.hash = id), id);
    await page.waitForFunction((id) => document.getElementById(id).open, id);
  },

  "batches are told apart from single units": async ({ page }) => {
    if ((await page.locator("#way").count()) === 0) return;
    await page.selectOption("#way", "batch");
    const variants = await page.locator("tr[data-row]:visible .variant").allTextContents();
    assert.ok(variants.length > 0 && variants.every((variant) => variant.includes("batch")));
  },

  "headings sort the rows of each kind, both ways, and say so": async ({ page }) => {
    await openRows(page);
    const table = page.locator("table.all").first();
    const speeds = () => medians(table.locator("tbody").first());
    const before = await speeds();
    assert.deepEqual(before, [...before].sort((a, b) => b - a));
    const heading = table.locator('th[data-sort="speed"]');
    assert.equal(await heading.getAttribute("aria-sort"), "descending");
    await heading.locator("button").click();
    assert.equal(await heading.getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await speeds(), [...before].reverse());
    await heading.locator("button").click();
    assert.equal(await heading.getAttribute("aria-sort"), "descending");
    assert.deepEqual(await speeds(), before);
  },

  "another baseline changes the ratios and is one itself": async ({ page }) => {
    await openEverything(page);
    const ratios = () => page.locator("tr[data-row] .ratio").allTextContents();
    const before = await ratios();
    const count = await page.locator("#baseline option").count();
    await page.selectOption("#baseline", { index: count - 1 });
    const peer = await page.inputValue("#baseline");
    const own = page.locator("tr.baseline");
    assert.ok((await own.count()) > 0);
    for (const text of await own.locator(".name").allTextContents()) assert.equal(text, peer);
    for (const text of await own.locator(".ratio").allTextContents()) assert.equal(text, `1.00 × ${peer}`);
    await page.selectOption("#baseline", "");
    assert.deepEqual(await ratios(), before);
  },

  "a row opens to its passes and the command that repeats it, by keyboard": async ({ page }) => {
    await openRows(page);
    const button = page.locator("tr[data-row] .more button").first();
    await button.focus();
    await page.keyboard.press("Enter");
    assert.equal(await button.getAttribute("aria-expanded"), "true");
    const detail = page.locator("tr.detail").first();
    assert.match(await detail.locator(".command").textContent(), /^wireproof bench .* --peers /);
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("tr.detail").count(), 0);
  },

  "the keyboard reaches every control, and what has the focus is seen": async ({ page }) => {
    await openEverything(page);
    const reached = await walk(page);
    const missed = await page.evaluate(
      (reached) =>
        [...document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']")]
          .filter((control) => control.checkVisibility() && !reached.includes(control.dataset.walk))
          .map((control) => control.outerHTML.slice(0, 80)),
      reached,
    );
    assert.deepEqual(missed, []);
  },

  "axe finds no serious fault, on light and on dark paper, wide and narrow": async ({ page }) => {
    await openEverything(page);
    // Through the debugger: the page's policy would not let it in.
    await page.evaluate(await source(axe));
    for (const colorScheme of ["light", "dark"]) {
      for (const width of [1280, 360]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        const faults = await page.evaluate(seriousFaults);
        assert.deepEqual(faults, [], `${colorScheme}, ${width} px`);
      }
    }
  },

  "nothing is wider than a phone": async ({ page }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await openEverything(page);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 360, `${width} px`);
  },

  "the matrix of hostile cases has a line for each case": async ({ page }) => {
    const place = page.locator("details[data-hostile]");
    if ((await place.count()) === 0) return;
    await place.locator("summary").click();
    await page.locator("table.matrix tbody tr").first().waitFor();
    const named = Number((await place.locator("summary").textContent()).match(/\d+/)[0]);
    assert.equal(await page.locator("table.matrix tbody tr").count(), named);
  },

  "every table has a caption and headings, every chart words": async ({ page }) => {
    await openEverything(page);
    const faults = await page.evaluate(() => [
      ...[...document.querySelectorAll("table")].filter((table) => !table.caption?.textContent || !table.querySelector("th[scope]")),
      ...[...document.querySelectorAll("svg[role=img]")].filter((svg) => !svg.getAttribute("aria-label")),
    ].map((fault) => fault.outerHTML.slice(0, 80)));
    assert.deepEqual(faults, []);
  },

  "the summaries are there without scripts": async ({ page }) => {
    const context = await page.context().browser().newContext({ javaScriptEnabled: false });
    const plain = await context.newPage();
    await plain.goto(page.url());
    assert.equal(await plain.locator("#tools").isVisible(), false);
    const rows = "table.speeds tr.row:visible";
    assert.ok((await plain.locator(rows).count()) > 0);
    assert.equal(await plain.locator(rows).count(), await page.locator(rows).count());
    await context.close();
  },

  "on paper, what is only for the screen is gone": async ({ page }) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("#tools").isVisible(), false);
    assert.ok(await page.locator("table.speeds").first().isVisible());
  },
};

/** How much slower than one quiet core the machine may be that checks the claims. */
const patience = 3;

/** The rows and the passes of the first task, by the data of the page. */
function firstTask(page) {
  return page.evaluate(() => {
    const { rows } = JSON.parse(document.getElementById("data").textContent).tasks[0];
    const passes = rows.flatMap(([, , , , passes, , { fault }]) => (fault === "failed in a pass" ? [] : passes));
    return { rows: rows.length, passes: passes.length };
  });
}

/** Opens the rows of the first task. */
async function openRows(page) {
  await page.locator("details[data-rows] > summary").first().click();
  await page.locator("tr[data-row]").first().waitFor();
}

async function openEverything(page) {
  await page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
  await nextFrame(page);
  await page.evaluate(() => {
    const buttons = () => [...document.querySelectorAll('.more button[aria-expanded="false"]')];
    for (let next = buttons()[0]; next; [next] = buttons()) next.click();
  });
  await nextFrame(page);
}

/** Events and layout follow in the next frame. */
const nextFrame = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done))));

const shown = (page) => page.locator("tr[data-row]:visible").count();

async function medians(body) {
  const texts = await body.locator("tr[data-row]:not(.unranked) .median").allTextContents();
  return texts.map((text) => Number(text.replaceAll(",", "")));
}

/** Goes from control to control until the focus leaves the page, and answers which had it. */
async function walk(page) {
  const most = await page.evaluate(() => {
    const controls = document.querySelectorAll("a[href], button, select, input, summary, [tabindex='0']");
    controls.forEach((control, at) => (control.dataset.walk = String(at)));
    document.body.focus();
    return controls.length;
  });
  const reached = [];
  for (let step = 0; step <= most; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => document.activeElement?.dataset?.walk ?? null);
    if (at === null) break;
    reached.push(at);
  }
  return reached;
}

async function source(file) {
  const { readFile } = await import("node:fs/promises");
  return readFile(file, "utf8");
}

async function seriousFaults() {
  const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.length} times, first ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary.slice(0, 200)}`);
}
