// What a reader yields, a line of JSON each, on standard output.
export function tell(event) {
  process.stdout.write(JSON.stringify(event) + '\n')
}

// An error is told like an event: nobody expects one.
export function tellError(error) {
  console.error(error)
  tell({ kind: 'error', message: String(error), cause: String(error?.cause ?? '') })
}
