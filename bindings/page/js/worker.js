// The worker: decodes the module, and answers one question after the other.
import { openEngine, askEngine } from "./engine.js";

let ready;

self.onmessage = async ({ data: { wasm, id, question, bytes } }) => {
  if (wasm !== undefined) {
    ready = unpack(wasm).then(openEngine);
    ready.catch((error) => self.postMessage({ error: `the module does not start: ${error.message}` }));
    return;
  }
  try {
    await ready;
    const answer = askEngine(question, bytes, (progress) => self.postMessage({ id, progress }));
    self.postMessage({ id, answer }, [answer.nodes.buffer, answer.records.buffer, answer.paths.buffer]);
  } catch (error) {
    self.postMessage({ id, error: `the module failed: ${error.message}` });
  }
};

/** The module from the base64 of its gzip. */
async function unpack(text) {
  const packed = Uint8Array.from(atob(text.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}
