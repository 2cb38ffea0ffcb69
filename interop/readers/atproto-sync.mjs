// The reference consumer, which checks each signature and each operation:
// node atproto-sync.mjs SERVICE DIRECTORY
import { IdResolver } from '@atproto/identity'
import { Firehose } from '@atproto/sync'
import { tell, tellError } from './told.mjs'

const [service, plcUrl] = process.argv.slice(2)
let cursor = 0
const firehose = new Firehose({
  service,
  // As it is, its own way of fetching refuses servers of this machine.
  idResolver: new IdResolver({ plcUrl, fetch: globalThis.fetch }),
  // Handles under .test lead nowhere in the DNS.
  unauthenticatedHandles: true,
  // Without a runner, one event after the other.
  getCursor: () => cursor,
  subscriptionReconnectDelay: 100,
  handleEvent: (event) => {
    cursor = event.seq
    tell(toLine(event))
  },
  onError: tellError,
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
