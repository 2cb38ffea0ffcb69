// The reference consumer, which checks each signature and each operation:
// node atproto-sync.mjs SERVICE DIRECTORY CURSOR
import { IdResolver } from '@atproto/identity'
import { Firehose } from '@atproto/sync'
import { writeEvent, writeError } from './output.mjs'

const [service, plcUrl, start] = process.argv.slice(2)
let cursor = Number(start)
const firehose = new Firehose({
  service,
  // Its default fetch function rejects servers of this machine.
  idResolver: new IdResolver({ plcUrl, fetch: globalThis.fetch }),
  // Handles under .test do not resolve in the DNS.
  unauthenticatedHandles: true,
  // Without a runner, one event after the other.
  getCursor: () => cursor,
  subscriptionReconnectDelay: 100,
  handleEvent: (event) => {
    cursor = event.seq
    writeEvent(toLine(event))
  },
  onError: writeError,
})
await firehose.start()

function toLine({ event, seq, did, rev, collection, rkey, cid, active, status }) {
  switch (event) {
    case 'identity':
      return { kind: event, seq, did }
    case 'account':
      return { kind: event, seq, did, active, status }
    case 'sync':
      return { kind: event, seq, did, rev }
    default:
      return { kind: 'commit', seq, did, rev, path: `${collection}/${rkey}`, cid: cid?.toString() }
  }
}
