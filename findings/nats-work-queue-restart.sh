#!/bin/sh
# A NATS stream with the retention of a work queue forgets the ids of acknowledged messages when its server restarts, within
# the duplicate window: a message that is published again is delivered a second time. Before the restart it is a duplicate.
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

func publish(js jetstream.JetStream) bool {
	return must(js.Publish(context.Background(), "jobs", []byte("job"), jetstream.WithMsgID("1"))).Duplicate
}

func main() {
	ctx, folder := context.Background(), os.Args[1]
	broker, js := start(folder)
	must(js.CreateStream(ctx, jetstream.StreamConfig{Name: "JOBS", Subjects: []string{"jobs"},
		Duplicates: time.Hour, Retention: jetstream.WorkQueuePolicy}))
	worker := jetstream.ConsumerConfig{Durable: "worker", AckPolicy: jetstream.AckExplicitPolicy}
	consumer := must(js.CreateConsumer(ctx, "JOBS", worker))
	fmt.Println("first: duplicate", publish(js))
	if err := must(consumer.Next()).DoubleAck(ctx); err != nil {
		panic(err)
	}
	fmt.Println("acknowledged: duplicate", publish(js))
	broker.Shutdown()
	broker.WaitForShutdown()
	broker, js = start(folder)
	fmt.Println("after a restart: duplicate", publish(js))
	consumer = must(js.Consumer(ctx, "JOBS", "worker"))
	fmt.Println("delivered again:", string(must(consumer.Next()).Data()))
	broker.Shutdown()
}
GO
expect "nats-server 2.15.2" "$(./program "$work/store" | paste -sd';' -)" \
    "first: duplicate false;acknowledged: duplicate true;after a restart: duplicate false;delivered again: job"
