// The verdicts of the page are those of the library on this machine.
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { give, open, title } from "./browser.mjs";

/** A claim for each input. */
export function verdicts(inputs) {
  const claims = inputs.inputs.map((input) => [`${input.file} gets its verdict`, (tab) => check(tab, input)]);
  return { ...Object.fromEntries(claims), "every case of the hostile set gets its code": withoutPolicy };
}

async function check(tab, { file, title: wanted, code, offset, records, did }) {
  await give(tab, file, { did });
  const { page } = tab;
  if (wanted !== undefined) assert.ok((await title(page)).startsWith(wanted), await title(page));
  if (records !== undefined) assert.match(await page.textContent(".facts"), new RegExp(`^${records.toLocaleString("en")} records`));
  if (code === undefined) {
    assert.equal(await page.locator(".verdict .code").count(), 0);
    return;
  }
  assert.equal(await page.textContent(".verdict .code"), code);
  assert.equal(await page.textContent(".why .code"), code);
  assert.ok((await page.textContent(".why dd")).length > 5, "the rule");
  await checkMark(tab, file, offset);
}

/** The marked bytes are in view, and are those of the input at the stated offset. */
async function checkMark({ page, inputs }, file, offset) {
  const terms = await page.locator(".why dt").allTextContents();
  const place = terms.indexOf("Byte");
  const text = await page.locator(".why dd").nth(place).textContent();
  const at = Number(/^[\d,]+/.exec(text)[0].replaceAll(",", ""));
  if (typeof offset === "number") assert.equal(at, offset);
  await page.locator(".hex .bytes mark").first().waitFor();
  const marked = (await page.locator(".hex .bytes mark").first().textContent()).split(" ");
  const bytes = [...inputs.bytes(file).subarray(at, at + marked.length)].map((byte) => byte.toString(16).padStart(2, "0"));
  assert.deepEqual(marked, bytes);
}

/** Its own worker needs a tab without the policy. */
async function withoutPolicy({ page, inputs }) {
  const tab = await open(page.context().browser(), fileURLToPath(page.url()), inputs, { bypassCSP: true });
  await checkHostileSet(tab).finally(tab.close);
}

/** Repositories, and messages in their order. */
async function checkHostileSet({ page, inputs }) {
  const { cases } = JSON.parse(inputs.bytes("hostile/hostile.json"));
  const asked = cases.map((entry) => toQuestion(entry, inputs.bytes(`hostile/${entry.file}`))).filter((question) => question !== null);
  assert.ok(asked.length > 100, `${asked.length} cases`);
  const wrong = await page.evaluate(async (asked) => {
    const source = new Blob([document.getElementById("worker").textContent]);
    const worker = new Worker(URL.createObjectURL(source));
    worker.postMessage({ wasm: document.getElementById("wasm").textContent });
    const wrong = [];
    for (const [id, { name, question, base64, code }] of asked.entries()) {
      const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
      const { answer, error } = await new Promise((resolve) => {
        worker.onmessage = ({ data }) => data.progress === undefined && resolve(data);
        worker.postMessage({ id, question: JSON.stringify(question), bytes });
      });
      const { result, refusal } = answer ? JSON.parse(answer.json) : { refusal: { code: error } };
      const last = result?.messages?.at(-1) ?? result;
      const fault = refusal ?? last.refusal ?? last.firstInvalid ?? last.invalid;
      const found = fault?.code ?? null;
      const isInside = !fault || fault.offset === undefined || fault.offset <= bytes.length;
      if (found !== code || !isInside) wrong.push(`${name}: ${found}, expected ${code}`);
    }
    worker.terminate();
    return wrong;
  }, asked);
  assert.deepEqual(wrong, []);
}

function toQuestion({ name, kind, code, did, signing_key: key, now }, bytes) {
  if (kind === "repo") return { name, code, question: { form: "repository", did, key }, base64: bytes.toString("base64") };
  if (kind !== "frames") return null;
  const question = { form: "frame", key, messages: placesIn(bytes), nowMicros: Date.parse(now) * 1000 };
  return { name, code, question, base64: bytes.toString("base64") };
}

function placesIn(bytes) {
  const places = [];
  for (let at = 4; places.length < bytes.readUInt32BE(0); ) {
    const length = bytes.readUInt32BE(at);
    places.push([at + 4, length]);
    at += 4 + length;
  }
  return places;
}
