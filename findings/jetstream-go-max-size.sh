#!/bin/sh
# The Go client of Jetstream's authors sends its limit on the size of messages as `maxSize`; their server reads
# `maxMessageSizeBytes`, and so does not apply it.
. "$(dirname "$0")/common.sh"
needs go
go_program github.com/bluesky-social/jetstream@v0.0.0-20251009222037-7d7efa58d7f1 <<'GO'
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/bluesky-social/jetstream/pkg/client"
	"github.com/bluesky-social/jetstream/pkg/client/schedulers/sequential"
	"github.com/bluesky-social/jetstream/pkg/models"
)

func main() {
	asked := make(chan string, 1)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.RawQuery
		http.Error(w, "", http.StatusForbidden)
	}))
	config := client.DefaultClientConfig()
	config.WebsocketURL = strings.Replace(listener.URL, "http", "ws", 1) + "/subscribe"
	config.MaxSize = 1000
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	ignore := func(context.Context, *models.Event) error { return nil }
	reader, err := client.NewClient(config, logger, sequential.NewScheduler("finding", logger, ignore))
	if err != nil {
		panic(err)
	}
	_ = reader.ConnectAndRead(context.Background(), nil)
	fmt.Println(<-asked)
}
GO
expect "Jetstream of October 2025, a limit of 1,000 bytes" "$(./program)" "maxSize=1000"
