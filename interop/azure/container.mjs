// Creates a container in Azurite: `node container.mjs URL ACCOUNT KEY NAME`. The client of archives creates none.
import { createHmac } from "node:crypto";

const [url, account, key, name] = process.argv.slice(2);
const date = new Date().toUTCString();
const version = "2021-12-02";
const headers = `x-ms-date:${date}\nx-ms-version:${version}\n`;
// The path of the URL begins with the account, and is signed after it.
const resource = `/${account}/${account}/${name}\nrestype:container`;
const text = `PUT\n\n\n\n\n\n\n\n\n\n\n\n${headers}${resource}`;
const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
const response = await fetch(`${url}/${account}/${name}?restype=container`, {
  method: "PUT",
  headers: { "x-ms-date": date, "x-ms-version": version, authorization: `SharedKey ${account}:${signature}` },
});
if (response.status !== 201) {
  console.error(response.status, await response.text());
  process.exit(1);
}
