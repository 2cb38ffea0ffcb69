// Prints events of `wireproof follow --to ws://…`, and acknowledges each:
// node --experimental-websocket websocket-client.mjs URL TOKEN_FILE [COUNT]
import { readFile } from 'node:fs/promises'

const [url, tokenFile, count = Infinity] = process.argv.slice(2)
let printed = 0

async function connect() {
  try {
    // The server makes the file at its first start.
    const token = (await readFile(tokenFile, 'utf8')).trim()
    receive(new WebSocket(url, { headers: { authorization: `Bearer ${token}` } }))
  } catch {
    setTimeout(connect, 500)
  }
}

function receive(socket) {
  socket.onmessage = ({ data }) => {
    const { id, did, kind, verdict } = JSON.parse(data)
    console.log(kind, verdict, did)
    // Store what you need first: an acknowledged event is not sent again.
    socket.send(id)
    printed += 1
    if (printed >= count) socket.close()
  }
  // It also runs when the server cannot be reached.
  socket.onclose = () => printed < count && setTimeout(connect, 500)
}
connect()
