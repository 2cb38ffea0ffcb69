// A reader of Jetstream version 1:
// node skyware-jetstream.mjs SERVICE OPTIONS
import { Jetstream } from '@skyware/jetstream'
import { toLine } from './jetstream-line.mjs'
import { writeEvent, writeError } from './output.mjs'

const [service, options] = process.argv.slice(2)
const { cursor, collections, dids } = JSON.parse(options)
const jetstream = new Jetstream({
  endpoint: `${service}/subscribe`,
  cursor,
  wantedCollections: collections,
  wantedDids: dids,
})
for (const kind of ['commit', 'identity', 'account']) {
  jetstream.on(kind, (event) => writeEvent(toLine(event)))
}
// A lost connection is reported too, and made again.
jetstream.on('error', (error) => {
  if (error instanceof SyntaxError) writeError(error)
  else console.error(error)
})
jetstream.start()
