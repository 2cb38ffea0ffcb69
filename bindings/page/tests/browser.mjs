// Opens the page, writes down what it says and asks for, and gives it inputs.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** The inputs and what the library on this machine says of them. */
export class Inputs {
  constructor(folder) {
    this.folder = folder;
    Object.assign(this, JSON.parse(this.bytes("inputs.json")));
  }

  path = (file) => join(this.folder, file);
  bytes = (file) => readFileSync(this.path(file));
  entry = (file) => this.inputs.find((input) => input.file === file);
}

/** The page in a tab of its own. */
export async function open(browser, file, inputs, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(20_000);
  const said = [];
  const asked = [];
  // Answers come from here: nothing leaves this machine.
  await context.route(/^https?:/, (route) => {
    asked.push(route.request().url());
    return answer(route, inputs);
  });
  const page = await context.newPage();
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("dialog", (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(pathToFileURL(file).href);
  return { page, said, asked, inputs, close: () => context.close() };
}

/** The simulated servers: a handle, the directory, the server of the account. */
function answer(route, inputs) {
  const url = route.request().url();
  const headers = { "access-control-allow-origin": "*" };
  const body = (bytes) => route.fulfill({ headers, body: bytes });
  if (url === `https://${inputs.handle}/.well-known/atproto-did`) return body(`${inputs.did}\n`);
  if (url === `https://plc.directory/${inputs.did}/log/audit`) return body(inputs.bytes("log.json"));
  if (url.startsWith("https://pds.example/xrpc/com.atproto.sync.getRepo?")) return body(inputs.bytes("repository.car"));
  if (url.startsWith("https://pds.example/xrpc/com.atproto.sync.getRecord?")) return body(inputs.bytes("record.car"));
  return url.includes("no-cors") ? route.fulfill({ headers: { "access-control-allow-origin": "https://other.example" }, body: inputs.did }) : route.abort();
}

/** Gives the page a file, and waits for its verdict. */
export async function give(tab, file, { key = tab.inputs.key, path = tab.inputs.entry(file)?.path ?? "", did = "" } = {}) {
  const { page } = tab;
  await page.evaluate(([key, path, did]) => {
    document.getElementById("key").value = key;
    document.getElementById("did").value = did;
    document.getElementById("path").value = path;
    document.getElementById("result").replaceChildren();
  }, [key, path, did]);
  await page.setInputFiles("#file", tab.inputs.path(file));
  await page.locator("#result .verdict").waitFor();
}

/** The heading of the verdict without its mark and code. */
export const title = (page) => page.evaluate(() => [...document.querySelector(".verdict h2").childNodes].filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join(""));

/** Events, layout and pictures follow in the next frames. */
export const settled = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 50))));
