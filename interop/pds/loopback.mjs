// By default both servers listen on every address of the machine.
export function listenOnLoopback(app) {
  const listen = app.listen.bind(app)
  app.listen = (port) => listen(port, '127.0.0.1')
}
