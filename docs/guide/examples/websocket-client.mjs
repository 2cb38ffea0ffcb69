// Prints events of `wireproof follow --to ws://…`, and acknowledges each:
// node --experimental-websocket websocket-client.mjs URL [COUNT]
const [url, count = Infinity] = process.argv.slice(2)
let printed = 0

function connect() {
  const socket = new WebSocket(url)
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
