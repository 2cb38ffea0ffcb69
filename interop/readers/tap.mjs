// The client of tap, which acknowledges each event after it was written:
// node tap.mjs SERVICE PASSWORD
import { SimpleIndexer, Tap } from '@atproto/tap'
import { writeEvent, writeError } from './output.mjs'

const [service, adminPassword] = process.argv.slice(2)
const indexer = new SimpleIndexer()
indexer.record((event) => writeEvent({ kind: 'record', ...event }))
indexer.identity((event) => writeEvent({ kind: 'identity', ...event }))
indexer.error(writeError)
const channel = new Tap(service, { adminPassword }).channel(indexer, { maxReconnectSeconds: 1 })
await channel.start()
