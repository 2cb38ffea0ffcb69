// What must be true of the page. Each claim gets the page after loading.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { give, open, settled, title } from "./browser.mjs";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const CONTROLS = "a[href], button, select, input, summary, [tabindex='0']";

export const claims = {
  "opens under its policy without a word and without a request": async ({ page, said, asked }) => {
    await settled(page);
    assert.deepEqual([said, asked], [[], []]);
    assert.equal(await page.title(), "Wireproof");
    const policy = await page.getAttribute("meta[http-equiv]", "content");
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^']+' 'wasm-unsafe-eval'; style-src 'sha256-[^']+'; worker-src blob:; connect-src https:;/);
    assert.doesNotMatch(policy, /unsafe-inline|'unsafe-eval'|\*/);
  },

  "refuses a script that is not its own": async ({ page, said }) => {
    await page.evaluate(() => {
      const script = document.createElement("script");
      script.append("document.title = 'run'");
      document.body.append(script);
    });
    assert.equal(await page.title(), "Wireproof");
    assert.match(said.join(" "), /The action has been blocked|Content Security Policy/);
  },

  "takes no text as markup, even from its own script": async ({ page, said }) => {
    const fault = await page.evaluate(() => {
      try {
        document.body.innerHTML = "<p>markup</p>";
        return "none";
      } catch (error) {
        return error.name;
      }
    });
    assert.equal(fault, "TypeError");
    assert.equal(said.length, 1);
  },

  "verifies without a request": async (tab) => {
    for (const file of ["repository.car", "frame.bin", "events.jsonl", "log.json", "hash.car"]) await give(tab, file);
    assert.deepEqual([tab.said, tab.asked], [[], []]);
  },

  "shows markup in names, records and errors as text": async (tab) => {
    const { page, said } = tab;
    await give(tab, "repository.car");
    await page.locator(".row", { hasText: "app.bsky.actor.profile" }).click();
    await page.locator(".detail pre", { hasText: "<img src=x onerror=alert(1)>" }).waitFor();
    await page.selectOption("select[id$=collection]", { label: "app.bsky.feed.post (72)" });
    await page.locator(".list .row").nth(1).click();
    await settled(page);
    await give(tab, "key-with-markup.car");
    assert.match(await page.textContent(".why"), /<img src=x onerror=alert\(1\)>/);
    await give(tab, "event.json");
    await page.locator(".list .row").first().click();
    await page.locator(".detail pre", { hasText: "<b onclick=alert(1)>" }).waitFor();
    assert.equal(await page.locator("img, iframe, b[onclick], main script").count(), 0);
    assert.doesNotMatch(await page.textContent("#result"), /[\u202a-\u202e\u0000]/);
    assert.deepEqual([said, await page.title()], [[], "Wireproof"]);
  },

  "sends a request only when Send is pressed, and to the address that is shown": async ({ page, asked, inputs }) => {
    await page.fill("#name", inputs.handle);
    await page.keyboard.press("Enter");
    for (const [index, host] of [inputs.handle, "plc.directory", "pds.example"].entries()) {
      const item = page.locator("#request-list li").nth(index);
      await item.locator("button:focus").waitFor();
      await settled(page);
      assert.equal(asked.length, index);
      const address = await item.locator("input").inputValue();
      assert.equal(new URL(address).host, host);
      await page.keyboard.press("Enter");
      await page.locator("#request-list li.done").nth(index).waitFor();
      assert.deepEqual(asked.slice(index), [address]);
    }
    await page.locator(".verdict h2", { hasText: /Proved$/ }).waitFor();
    const chain = await page.getAttribute(".chain svg", "aria-label");
    assert.match(chain, /Handle: confirmed.*Account: DID log proved.*Key: from the log.*Signature: valid.*Tree: canonical, whole.*Records: to the last block/);
  },

  "an at:// URI asks for the proof of its record": async ({ page, asked, inputs }) => {
    const { path } = inputs.entry("record.car");
    await page.fill("#name", `at://${inputs.did}/${path}`);
    await page.click("text=Look up");
    for (const index of [0, 1]) {
      await page.locator("#request-list li").nth(index).locator("button.main").click();
      await page.locator("#request-list li.done").nth(index).waitFor();
    }
    await page.locator(".verdict h2", { hasText: "Record proved" }).waitFor();
    assert.match(asked[1], /getRecord\?did=did%3Aplc%3A\w+&collection=app\.bsky\.graph\.follow&rkey=\w+$/);
  },

  "a request that fails says why, and its address can be changed": async ({ page, asked }) => {
    await page.fill("#name", "no-cors.example");
    await page.keyboard.press("Enter");
    const item = page.locator("#request-list li").first();
    await item.locator("button").click();
    await page.locator("#request-list li.failed").waitFor();
    assert.match(await item.textContent(), /CORS/);
    await item.locator("input").fill("http://127.0.0.1/plain");
    await item.locator("button").click();
    await item.locator("text=must begin with https://").waitFor();
    assert.equal(asked.length, 1);
  },

  "a handle is not confirmed by another host": async ({ page, inputs }) => {
    await page.fill("#name", "someone.example");
    await page.keyboard.press("Enter");
    const item = page.locator("#request-list li");
    await item.locator("input").fill(`https://${inputs.handle}/.well-known/atproto-did`);
    await item.locator("button").click();
    await item.nth(1).locator("button").click();
    await page.locator(".verdict h2", { hasText: "DID log proved" }).waitFor();
    assert.match(await page.getAttribute(".chain svg", "aria-label"), /Handle: claimed by the DID, alice\.example/);
  },

  "wrong options are not a fault of the input": async (tab) => {
    await give(tab, "repository.car", { key: "did:key:zzz" });
    assert.equal(await title(tab.page), "Check the options");
    await give(tab, "record.car", { path: "no path" });
    assert.equal(await title(tab.page), "Check the options");
  },

  "a DID log that was given proves the author of a repository": async (tab) => {
    await give(tab, "repository.car", { key: "" });
    assert.equal(await title(tab.page), "Whole; author not proved");
    await give(tab, "log.json", { key: "" });
    await give(tab, "repository.car", { key: "" });
    assert.equal(await title(tab.page), "Proved");
    assert.match(await tab.page.getAttribute(".chain svg", "aria-label"), /Handle: claimed by the DID.*Key: from the log/);
  },

  "the key of a known account proves nothing of another": async (tab) => {
    await give(tab, "log.json", { key: "" });
    await give(tab, "other-account.car", { key: "" });
    assert.deepEqual([await title(tab.page), await tab.page.textContent(".verdict .code")], ["Refused", "commit/did"]);
  },

  "the key of an account is looked up for data that lacks it": async (tab) => {
    const { page, asked } = tab;
    for (const file of ["repository.car", "frame.bin", "record.car"]) {
      // A tab of its own: the page remembers keys until it is closed.
      const other = await open(page.context().browser(), fileOf(page), tab.inputs);
      await give(other, file, { key: "" });
      await other.page.click("text=Look up the key of");
      await settled(other.page);
      assert.deepEqual(other.asked, []);
      await other.page.locator("#request-list li button").click();
      await other.page.locator(".verdict h2", { hasText: /^.(Proved|Verified|Record proved)$/ }).waitFor();
      assert.match(await other.page.getAttribute(".chain svg", "aria-label"), /Account: DID log proved.*Key: from the log/);
      assert.deepEqual(other.asked, [`https://plc.directory/${tab.inputs.did}/log/audit`]);
      await other.close();
    }
    assert.deepEqual(asked, []);
  },

  "a slice that is taken for a whole repository gets a hint": async (tab) => {
    await give(tab, "record.car", { path: "" });
    assert.match(await tab.page.textContent(".verdict"), /enter the path of the record or the names of the collections/);
  },

  "takes pasted text and dropped files": async ({ page, inputs }) => {
    await page.evaluate((text) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text", text);
      document.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, inputs.bytes("events.jsonl").toString());
    await page.locator(".verdict h2", { hasText: "Verified" }).waitFor();
    await page.evaluate((base64) => {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([bytes], "dropped.car"));
      document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
    }, inputs.bytes("truncated.car").toString("base64"));
    await page.locator(".verdict .code", { hasText: "car/truncated" }).waitFor();
    await page.fill("#name", inputs.bytes("frame.bin").toString("base64"));
    await page.keyboard.press("Enter");
    await page.locator(".verdict h2", { hasText: "author not proved" }).waitFor();
  },

  "messages in a row are judged as a chain": async (tab) => {
    const chain = () => tab.page.getAttribute(".chain svg", "aria-label");
    await give(tab, "chain-0.bin");
    assert.match(await chain(), /Chain: the first one here/);
    await give(tab, "chain-1.bin");
    assert.match(await chain(), /Chain: continues the last/);
    // The same again is judged from where it was judged before.
    await give(tab, "chain-1.bin");
    assert.match(await chain(), /Chain: continues the last/);
    await give(tab, "chain-0.bin");
    assert.equal(await title(tab.page), "Left out");
    await tab.page.click("text=Forget them");
    await give(tab, "chain-0.bin");
    await give(tab, "chain-2.bin");
    assert.equal(await title(tab.page), "Verified, after a gap");
    assert.match(await chain(), /Chain: one before is missing/);
  },

  "several files with messages are opened as one after the other": async ({ page, inputs }) => {
    await page.evaluate((key) => (document.getElementById("key").value = key), inputs.key);
    await page.setInputFiles("#file", [2, 0, 1].map((number) => inputs.path(`chain-${number}.bin`)));
    await page.locator(".verdict h2", { hasText: "Verified" }).waitFor();
    assert.match(await page.getAttribute(".chain svg", "aria-label"), /Signatures: valid; Operations: match the signed trees; Chains: no gap/);
    assert.equal(await page.locator("[role=option]").count(), 3);
    await page.locator("[role=option]").nth(2).click();
    await page.locator(".detail svg[aria-label*='Chain: continues the last']").waitFor();
  },

  "states are saved, and judged from after they are opened": async (tab) => {
    const { page, inputs } = tab;
    await give(tab, "chain.bin");
    const download = page.waitForEvent("download");
    await page.click("text=Save states");
    const saved = await (await download).path();
    const other = await open(page.context().browser(), fileOf(page), inputs);
    await other.page.setInputFiles("#file", { name: "states.json", mimeType: "application/json", buffer: await readFile(saved) });
    await other.page.locator(".verdict h2", { hasText: "States read" }).waitFor();
    await give(other, "chain-2.bin");
    assert.equal(await title(other.page), "Left out");
    assert.deepEqual([other.said, other.asked], [[], []]);
    await other.close();
  },

  "a collection is proved whole, record by record": async (tab) => {
    const { page } = tab;
    await give(tab, "range.car");
    assert.match(await page.textContent(".verdict"), /These are all records of app\.bsky\.graph\.follow/);
    await page.locator("[role=option]").nth(3).click();
    await page.locator(".detail pre", { hasText: "app.bsky.graph.follow" }).waitFor();
    await give(tab, "range.car", { path: "app.bsky.feed.*" });
    assert.equal(await title(page), "Refused");
    await give(tab, "repository.car", { path: "app.bsky.feed.*, app.bsky.actor.profile" });
    assert.equal(await title(page), "Collections proved");
    await give(tab, "range.car", { key: "" });
    assert.equal(await title(page), "Check the options");
  },

  "stops, and verifies the next input": async (tab) => {
    const { page, inputs } = tab;
    // The stop comes right after the verification has begun, whatever its speed.
    await page.evaluate(() => {
      const working = document.getElementById("working");
      new MutationObserver((_, observer) => {
        observer.disconnect();
        document.getElementById("stop").click();
      }).observe(working, { attributes: true });
    });
    await page.setInputFiles("#file", inputs.path("repository-10000.car"));
    await page.locator("#status", { hasText: "Stopped." }).waitFor({ state: "attached" });
    assert.equal(await page.locator(".verdict").count(), 0);
    assert.equal(await page.locator("#working").isVisible(), false);
    await give(tab, "repository.car");
    assert.equal(await title(page), "Proved");
  },

  "a list of 10,000 records has few elements, and the keyboard goes through it": async (tab) => {
    const { page } = tab;
    await give(tab, "repository-10000.car");
    const rows = page.locator("[role=listbox] [role=option]");
    assert.ok((await rows.count()) < 60);
    await page.locator("[role=listbox]").focus();
    await page.keyboard.press("End");
    const last = page.locator("[role=option][aria-selected=true]");
    assert.equal(await last.getAttribute("aria-posinset"), "10000");
    await page.keyboard.press("ArrowUp");
    assert.equal(await last.getAttribute("aria-posinset"), "9999");
    await page.keyboard.press("Home");
    await page.keyboard.press("PageDown");
    assert.ok(Number(await last.getAttribute("aria-posinset")) > 5);
    assert.ok((await page.locator("body *").count()) < 6000);
    await page.fill("input[type=search]", "self");
    await page.locator(".count", { hasText: "1 record shown" }).waitFor();
  },

  "a chosen record lights the nodes that prove it": async (tab) => {
    const { page } = tab;
    await give(tab, "repository.car");
    await page.locator("[role=option]").nth(8).click();
    const steps = await page.locator(".proof li").allTextContents();
    assert.match(steps[0], /^Signed commit/);
    assert.match(steps.at(-1), /^Record/);
    const lit = page.locator(".tree [role=treeitem].lit");
    assert.equal(await lit.count(), steps.length - 2);
    assert.equal(await page.locator(".beam").count(), 1);
  },

  "the tree is walked and zoomed by keyboard": async (tab) => {
    const { page } = tab;
    await give(tab, "repository.car");
    const where = () => page.textContent(".tree .where");
    const wholeRecords = /240 records below/;
    await page.locator("[role=tree]").focus();
    assert.match(await where(), wholeRecords);
    await page.keyboard.press("ArrowDown");
    assert.doesNotMatch(await where(), wholeRecords);
    const before = await where();
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await where(), before);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await where(), before);
    const width = () => page.locator(".tree .at rect").evaluate((rect) => rect.getBBox().width);
    const narrow = await width();
    await page.keyboard.press("Enter");
    await page.waitForTimeout(400);
    assert.ok((await width()) > narrow);
    const active = await page.getAttribute("[role=tree]", "aria-activedescendant");
    assert.equal(await page.locator(`[id="${active}"]`).getAttribute("aria-level"), "2");
    await page.keyboard.press("Escape");
    assert.match(await where(), wholeRecords);
  },

  "a record that is chosen in the picture is shown": async (tab) => {
    const { page } = tab;
    await give(tab, "record.car", { path: "" });
    assert.match(await page.textContent(".verdict .code"), /tree\/missing-node|record\/missing/);
    await give(tab, "repository.car");
    for (let step = 0; step < 4; step += 1) await page.click("[aria-label='Zoom in']");
    await page.locator("[data-record]").first().waitFor();
    await page.waitForTimeout(400);
    const name = await page.locator("[data-record] title").nth(3).textContent();
    await page.locator("[data-record]").nth(3).click();
    await page.locator(".detail h3", { hasText: name }).waitFor();
  },

  "the keyboard reaches every control, and the focus is seen": async (tab) => {
    const { page } = tab;
    await page.evaluate(() => (document.getElementById("options").open = true));
    for (const file of ["repository.car", "signature.car", "events-broken.jsonl"]) {
      await give(tab, file);
      await settled(page);
      const missed = await walk(page);
      assert.deepEqual(missed, [], file);
    }
  },

  "bytes can be looked up": async (tab) => {
    const { page } = tab;
    await give(tab, "hash.car");
    await page.fill(".hex-bar input", "0");
    await page.keyboard.press("Enter");
    await page.locator(".hex .row .at", { hasText: /^ *0$/ }).waitFor();
    await page.click("text=Back to the mark");
    await page.locator(".hex mark").first().waitFor();
  },

  "the switch changes the colors, whatever the system has": async ({ page }) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.selectOption("#theme", "dark");
      assert.equal(await paper(), "rgb(20, 24, 27)");
      await page.selectOption("#theme", "light");
      assert.equal(await paper(), "rgb(251, 251, 249)");
      await page.selectOption("#theme", "");
      assert.equal(await paper(), colorScheme === "dark" ? "rgb(20, 24, 27)" : "rgb(251, 251, 249)");
    }
  },

  "nothing is wider than a phone": async (tab) => {
    const { page, inputs } = tab;
    await page.setViewportSize({ width: 390, height: 844 });
    for (const { file } of inputs.inputs) {
      await give(tab, file);
      const row = page.locator("[role=option]").first();
      if (await row.count()) await row.click();
      await settled(page);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 390, `${file}: ${width} px`);
    }
  },

  "axe finds no serious fault, in light and dark, wide and narrow": async (tab) => {
    const { page } = tab;
    // Through the debugger: the policy of the page would not let it in.
    await page.evaluate(await readFile(axe, "utf8"));
    for (const file of ["repository.car", "signature.car", "events-broken.jsonl", "log.json", "frame.bin", "chain-hash.bin", "record.car", "range.car"]) {
      await give(tab, file);
      for (const [colorScheme, width] of [["light", 1280], ["dark", 390]]) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: 900 });
        await page.waitForTimeout(250);
        assert.deepEqual(await page.evaluate(seriousFaults), [], `${file}, ${colorScheme}, ${width} px`);
      }
    }
  },
};

const fileOf = (page) => fileURLToPath(page.url());

/** Goes from control to control with Tab; returns the controls that never had a visible focus. */
async function walk(page) {
  const count = await page.evaluate((controls) => {
    document.querySelectorAll("[data-walk]").forEach((control) => delete control.dataset.walk);
    document.activeElement?.blur();
    document.querySelectorAll(controls).forEach((control, at) => (control.dataset.walk = String(at)));
    return document.querySelectorAll(controls).length;
  }, CONTROLS);
  const reached = new Set();
  for (let step = 0; step <= count + 4; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const focused = document.activeElement;
      const shown = focused.type === "file" ? document.querySelector(".drop .button") : focused;
      const { outlineStyle, outlineWidth } = getComputedStyle(shown);
      return outlineStyle === "none" || outlineWidth === "0px" ? null : focused.dataset.walk;
    });
    if (at !== null && at !== undefined) reached.add(at);
  }
  return page.evaluate(
    ([controls, reached]) => [...document.querySelectorAll(controls)].filter((control) => control.checkVisibility() && !control.disabled && !reached.includes(control.dataset.walk)).map((control) => control.outerHTML.slice(0, 100)),
    [CONTROLS, [...reached]],
  );
}

async function seriousFaults() {
  const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.length} times, first ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary.slice(0, 200)}`);
}
