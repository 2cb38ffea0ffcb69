// The output of a reader: one JSON object a line.
export function writeEvent(event) {
  process.stdout.write(JSON.stringify(event) + '\n')
}

// An error is written like an event; tests expect none.
export function writeError(error) {
  console.error(error)
  writeEvent({ kind: 'error', message: String(error), cause: String(error?.cause ?? '') })
}
