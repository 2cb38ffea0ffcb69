// The module behind one call. Its generated JavaScript comes before this file in the worker.

/** Starts the module. */
export function openEngine(bytes) {
  initSync({ module: new WebAssembly.Module(bytes) });
}

/** The answer to a question in JSON about `input`; `progress(read)` is called while it is read. */
export function askEngine(question, input, progress) {
  self.reportProgress = progress;
  const reply = ask(question, input);
  const answer = { json: reply.json(), nodes: reply.nodes(), records: reply.records(), paths: reply.paths() };
  reply.free();
  return answer;
}
