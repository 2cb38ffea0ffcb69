#!/bin/sh
# A NATS stream remembers message ids for its duplicate window even when it has been purged: a message that is published again
# is acknowledged as a duplicate and stored nowhere. After a restart of the server it is stored.
. "$(dirname "$0")/common.sh"
needs go
cp "$findings/nats.go" .
go_program github.com/nats-io/nats-server/v2@v2.15.2 github.com/nats-io/nats.go@v1.55.0 <<'GO'
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func publish(js jetstream.JetStream) string {
	ctx := context.Background()
	ack := must(js.Publish(ctx, "events", []byte("event"), jetstream.WithMsgID("1")))
	info := must(must(js.Stream(ctx, "EVENTS")).Info(ctx))
	return fmt.Sprintf("duplicate %v, %d stored", ack.Duplicate, info.State.Msgs)
}

func main() {
	ctx, folder := context.Background(), os.Args[1]
	broker, js := start(folder)
	config := jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events"}, Duplicates: time.Hour}
	stream := must(js.CreateStream(ctx, config))
	fmt.Println("first:", publish(js))
	if err := stream.Purge(ctx); err != nil {
		panic(err)
	}
	fmt.Println("after a purge:", publish(js))
	broker.Shutdown()
	broker.WaitForShutdown()
	broker, js = start(folder)
	fmt.Println("after a restart:", publish(js))
	broker.Shutdown()
}
GO
expect "nats-server 2.15.2" "$(./program "$work/store" | paste -sd';' -)" \
    "first: duplicate false, 1 stored;after a purge: duplicate true, 0 stored;after a restart: duplicate false, 1 stored"
