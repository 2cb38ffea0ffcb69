// Opens a page and records its console messages and requests.
import { pathToFileURL } from "node:url";

/** The page of a file, with its console and its requests written down. */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(15_000);
  const page = await context.newPage();
  const said = [];
  const asked = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(error.message));
  page.on("dialog", (dialog) => {
    said.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  const url = pathToFileURL(file).href;
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(url);
  const others = () => asked.filter((address) => address !== url);
  return { page, said, others, close: () => context.close() };
}
