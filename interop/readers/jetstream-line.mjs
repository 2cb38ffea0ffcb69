// The line of an event of Jetstream version 1. Its sequence number is the cursor of this version, a time.
export function toLine({ kind, did, time_us: seq, commit, account }) {
  switch (kind) {
    case 'commit': {
      const { rev, collection, rkey, cid, record } = commit
      return { kind, seq, did, rev, path: `${collection}/${rkey}`, cid, record }
    }
    case 'account':
      return { kind, seq, did, active: account.active, status: account.status }
    default:
      return { kind, seq, did }
  }
}
