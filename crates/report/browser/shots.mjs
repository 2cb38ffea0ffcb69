// Screenshots on a phone and a desktop, light and dark.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { open } from "./browser.mjs";

const screens = { phone: { width: 390, height: 844 }, desk: { width: 1280, height: 900 } };

/** Writes a picture of the page for each screen and each scheme. */
export async function shoot(browser, file, folder, name) {
  await mkdir(folder, { recursive: true });
  for (const [screen, viewport] of Object.entries(screens)) {
    for (const colorScheme of ["light", "dark"]) {
      const { page, close } = await open(browser, file, { viewport, colorScheme });
      const place = page.locator("details[data-rows] > summary").first();
      if (await place.count()) await place.click();
      const button = page.locator("tr[data-row] .more button").first();
      if (await button.count()) await button.click();
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: join(folder, `${name}-${screen}-${colorScheme}.png`), fullPage: true });
      await close();
    }
  }
}
