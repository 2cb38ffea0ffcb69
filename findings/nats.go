// What the scripts about NATS share: a server with JetStream in this process, and a client of it.

package main

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func start(folder string) (*server.Server, jetstream.JetStream) {
	options := &server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true}
	broker := must(server.NewServer(options))
	go broker.Start()
	if !broker.ReadyForConnections(time.Minute) {
		panic("the server does not start")
	}
	return broker, must(jetstream.New(must(nats.Connect(broker.ClientURL()))))
}
