// A reader that validates every frame against the lexicon and checks no proofs:
// node atcute-firehose.mjs SERVICE CURSOR
import { ComAtprotoSyncSubscribeRepos } from '@atcute/atproto'
import { FirehoseSubscription } from '@atcute/firehose'
import { writeEvent, writeError } from './output.mjs'

const [service, start] = process.argv.slice(2)
let cursor = Number(start)
const events = new FirehoseSubscription({
  service,
  nsid: ComAtprotoSyncSubscribeRepos.mainSchema,
  params: () => ({ cursor }),
  onError: writeError,
})
for await (const event of events) {
  cursor = event.seq ?? cursor
  for (const line of toLines(event)) writeEvent(line)
}

function toLines({ $type, seq, did, repo, rev, active, status, ops, ...rest }) {
  const kind = $type.split('#')[1]
  switch (kind) {
    case 'commit':
      return ops.map(({ path, cid }) => ({ kind, seq, did: repo, rev, path, cid: cid?.$link }))
    case 'sync':
      return [{ kind, seq, did, rev }]
    case 'account':
      return [{ kind, seq, did, active, status }]
    case 'identity':
      return [{ kind, seq, did }]
    default:
      return [{ kind: 'error', message: $type, cause: JSON.stringify(rest) }]
  }
}
