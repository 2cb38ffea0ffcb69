// A reader that validates every message of a labeler against the lexicon: node atcute-labels.mjs SERVICE CURSOR
import { ComAtprotoLabelSubscribeLabels } from '@atcute/atproto'
import { FirehoseSubscription } from '@atcute/firehose'
import { writeEvent } from './output.mjs'

const [service, start] = process.argv.slice(2)
let cursor = Number(start)
const messages = new FirehoseSubscription({
  service,
  nsid: ComAtprotoLabelSubscribeLabels.mainSchema,
  params: () => ({ cursor }),
  // A message that is refused is not yielded.
  onError: (error) => console.error(error),
})
for await (const { $type, seq, labels } of messages) {
  cursor = seq ?? cursor
  writeEvent({ kind: $type.split('#')[1], seq, labels: labels?.length })
}
