// Asks a server for its repositories and hosts, page by page, and checks each answer against the lexicon:
// node atproto-api.mjs SERVICE COLLECTION DID...
import { AtpBaseClient } from '@atproto/api'
import { writeEvent } from './output.mjs'

const [service, collection, ...dids] = process.argv.slice(2)
const { sync } = new AtpBaseClient(service).com.atproto

async function writePages(kind, list, rows) {
  let cursor
  do {
    const { data } = await list({ cursor, limit: 2 })
    rows(data).forEach((row) => writeEvent({ kind, ...row }))
    cursor = data.cursor
  } while (cursor)
}

async function writeAnswer(kind, parameters, ask) {
  try {
    const { data } = await ask(parameters)
    writeEvent({ kind, ...parameters, ...data })
  } catch (error) {
    writeEvent({ kind, ...parameters, refusal: error.error, http: error.status })
  }
}

await writePages('repo', (page) => sync.listRepos(page), ({ repos }) => repos)
await writePages(
  'repo in collection',
  (page) => sync.listReposByCollection({ collection, ...page }),
  ({ repos }) => repos,
)
await writePages('host', (page) => sync.listHosts(page), ({ hosts }) => hosts)
for (const did of dids) {
  await writeAnswer('status', { did }, (parameters) => sync.getRepoStatus(parameters))
  await writeAnswer('latest', { did }, (parameters) => sync.getLatestCommit(parameters))
}
const { data } = await sync.listHosts({ limit: 1 })
const hostnames = data.hosts.map(({ hostname }) => hostname)
for (const hostname of [...hostnames, 'another.test']) {
  await writeAnswer('host status', { hostname }, (parameters) => sync.getHostStatus(parameters))
}
