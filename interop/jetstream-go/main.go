// Reads Jetstream version 1 with the client of its authors, and prints each event as a line of JSON:
//
//	jetstream-client SERVICE OPTIONS
//
// It ends with the connection.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"github.com/bluesky-social/jetstream/pkg/client"
	"github.com/bluesky-social/jetstream/pkg/client/schedulers/sequential"
	"github.com/bluesky-social/jetstream/pkg/models"
)

// options say which events are read, from a time in microseconds on.
type options struct {
	Cursor      int64    `json:"cursor"`
	Collections []string `json:"collections"`
	Dids        []string `json:"dids"`
	Compress    bool     `json:"compress"`
}

// event is a line of the output.
type event struct {
	Kind   string          `json:"kind"`
	Seq    int64           `json:"seq"`
	Did    string          `json:"did"`
	Rev    string          `json:"rev,omitempty"`
	Path   string          `json:"path,omitempty"`
	Cid    string          `json:"cid,omitempty"`
	Record json.RawMessage `json:"record,omitempty"`
}

func main() {
	if err := read(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(service, text string) error {
	var options options
	if err := json.Unmarshal([]byte(text), &options); err != nil {
		return err
	}
	config := client.DefaultClientConfig()
	config.WebsocketURL = service + "/subscribe"
	config.Compress = options.Compress
	config.WantedCollections = options.Collections
	config.WantedDids = options.Dids
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	scheduler := sequential.NewScheduler("interop", logger, write)
	reader, err := client.NewClient(config, logger, scheduler)
	if err != nil {
		return err
	}
	return reader.ConnectAndRead(context.Background(), &options.Cursor)
}

func write(_ context.Context, received *models.Event) error {
	line := event{Kind: received.Kind, Seq: received.TimeUS, Did: received.Did}
	if commit := received.Commit; commit != nil {
		line.Rev, line.Cid, line.Record = commit.Rev, commit.CID, json.RawMessage(commit.Record)
		line.Path = commit.Collection + "/" + commit.RKey
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}
