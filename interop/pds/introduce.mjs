// Adds a host to the database of a relay that is not running: node introduce.mjs DATABASE HOSTNAME
//
// requestCrawl contacts the host through a client that connects to public addresses only, so it cannot add
// a host of this machine.
import Database from 'better-sqlite3'

const [file, hostname] = process.argv.slice(2)
const database = new Database(file, { fileMustExist: true })
database
  .prepare(
    `INSERT INTO host (created_at, updated_at, hostname, no_ssl, account_limit, trusted)
     VALUES (datetime('now'), datetime('now'), ?, 1, 1000, 1)`,
  )
  .run(hostname)
database.close()
