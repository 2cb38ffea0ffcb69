// A reader of Jetstream version 1 that sends its options as a message and checks every event against a schema:
// node atcute-jetstream.mjs SERVICE OPTIONS
import { JetstreamSubscription } from '@atcute/jetstream'
import { toLine } from './jetstream-line.mjs'
import { writeEvent, writeError } from './output.mjs'

const [service, options] = process.argv.slice(2)
const { cursor, collections, dids } = JSON.parse(options)
const events = new JetstreamSubscription({
  url: service,
  cursor,
  wantedCollections: collections,
  wantedDids: dids,
  onError: writeError,
})
for await (const event of events) writeEvent(toLine(event))
