// The worker that verifies, and questions to it.
import { byId } from "./dom.js";

/** A question that was stopped. */
export class Stopped extends Error {}

/** A worker, started before its first question, and started again after a stop. */
export class Work {
  constructor() {
    const source = new Blob([byId("worker").textContent], { type: "text/javascript" });
    // The policy allows this address alone, and no text as markup or script anywhere.
    const types = globalThis.trustedTypes?.createPolicy("worker", { createScriptURL: (address) => address });
    const address = URL.createObjectURL(source);
    this.address = types ? types.createScriptURL(address) : address;
    this.waiting = new Map();
    this.next = 1;
  }

  /** Starts the worker, which decodes and compiles the module. */
  start() {
    if (this.worker) return;
    this.worker = new Worker(this.address);
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = (event) => this.fail(new Error(event.message || "the worker failed"));
    this.worker.postMessage({ wasm: byId("wasm").textContent });
  }

  /** Asks about a copy of `bytes`; `onProgress(read)` gets the number of bytes read so far. */
  ask(question, bytes, onProgress = () => {}) {
    this.start();
    const id = this.next;
    this.next += 1;
    const message = { id, question: JSON.stringify(question), bytes };
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, onProgress });
      this.worker.postMessage(message);
    });
  }

  receive({ id, progress, answer, error }) {
    // A module that has failed once is in no known state: the next question gets a new one.
    if (error !== undefined) this.fail(new Error(error));
    const waiting = this.waiting.get(id);
    if (progress !== undefined) waiting?.onProgress(progress);
    if (answer === undefined) return;
    this.waiting.delete(id);
    waiting?.resolve({ ...JSON.parse(answer.json), tables: answer });
  }

  /** Ends the worker and every question. */
  stop() {
    this.fail(new Stopped());
  }

  fail(error) {
    this.worker?.terminate();
    this.worker = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of waiting) reject(error);
  }
}
