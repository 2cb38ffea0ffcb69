package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"

	comatproto "github.com/bluesky-social/indigo/api/atproto"
	"github.com/bluesky-social/indigo/atproto/identity"
	"github.com/bluesky-social/indigo/atproto/repo"
	"github.com/bluesky-social/indigo/atproto/syntax"
	"github.com/bluesky-social/indigo/events"
	"github.com/bluesky-social/indigo/events/schedulers/sequential"
	"github.com/gorilla/websocket"
)

// event is a line of the output; of a commit there is one for each operation.
type event struct {
	Kind    string  `json:"kind"`
	Seq     int64   `json:"seq,omitempty"`
	Did     string  `json:"did,omitempty"`
	Rev     string  `json:"rev,omitempty"`
	Path    string  `json:"path,omitempty"`
	Cid     *string `json:"cid,omitempty"`
	Name    string  `json:"name,omitempty"`
	Message string  `json:"message,omitempty"`
}

// consumer verifies each event with the keys of a directory.
type consumer struct {
	directory identity.Directory
	// The root of the tree of each account.
	roots map[string]string
	seq   int64
}

// consume follows a service from a cursor on, and prints what it verified. It ends at the first fault.
func consume(service, plcURL, cursor string) error {
	address := service + "/xrpc/com.atproto.sync.subscribeRepos?cursor=" + cursor
	connection, _, err := websocket.DefaultDialer.Dial(address, nil)
	if err != nil {
		return err
	}
	base := identity.BaseDirectory{PLCURL: plcURL, SkipHandleVerification: true}
	consumer := &consumer{directory: &base, roots: map[string]string{}}
	callbacks := &events.RepoStreamCallbacks{
		RepoCommit: consumer.commit,
		RepoSync: func(sync *comatproto.SyncSubscribeRepos_Sync) error {
			if _, err := repo.VerifySyncMessage(context.Background(), consumer.directory, sync); err != nil {
				return err
			}
			return consumer.print(event{Kind: "sync", Seq: sync.Seq, Did: sync.Did, Rev: sync.Rev})
		},
		RepoIdentity: func(identity *comatproto.SyncSubscribeRepos_Identity) error {
			return consumer.print(event{Kind: "identity", Seq: identity.Seq, Did: identity.Did})
		},
		RepoAccount: func(account *comatproto.SyncSubscribeRepos_Account) error {
			return consumer.print(event{Kind: "account", Seq: account.Seq, Did: account.Did})
		},
		RepoInfo: func(info *comatproto.SyncSubscribeRepos_Info) error {
			return write(event{Kind: "info", Name: info.Name})
		},
		Error: func(frame *events.ErrorFrame) error {
			return write(event{Kind: "refusal", Name: frame.Error})
		},
	}
	scheduler := sequential.NewScheduler("consumer", callbacks.EventHandler)
	return events.HandleRepoStream(context.Background(), connection, scheduler, nil)
}

// isLost tells a lost connection from a fault.
func isLost(err error) bool {
	var closed *websocket.CloseError
	var network *net.OpError
	return errors.As(err, &closed) || errors.As(err, &network)
}

func (c *consumer) commit(commit *comatproto.SyncSubscribeRepos_Commit) error {
	ctx := context.Background()
	if err := repo.VerifyCommitSignature(ctx, c.directory, commit); err != nil {
		return err
	}
	repository, err := repo.VerifyCommitMessage(ctx, commit)
	if err != nil {
		return err
	}
	before, isKnown := c.roots[commit.Repo]
	if isKnown && (commit.PrevData == nil || commit.PrevData.String() != before) {
		return fmt.Errorf("prevData of %s is not the root of the previous event, %s", commit.Rev, before)
	}
	root, err := repository.MST.RootCID()
	if err != nil {
		return err
	}
	c.roots[commit.Repo] = root.String()
	if _, err := syntax.ParseDID(commit.Repo); err != nil {
		return err
	}
	if err := c.next(commit.Seq); err != nil {
		return err
	}
	for _, op := range commit.Ops {
		line := event{Kind: "commit", Seq: commit.Seq, Did: commit.Repo, Rev: commit.Rev, Path: op.Path}
		if op.Cid != nil {
			text := op.Cid.String()
			line.Cid = &text
		}
		if err := write(line); err != nil {
			return err
		}
	}
	return nil
}

func (c *consumer) print(line event) error {
	if err := c.next(line.Seq); err != nil {
		return err
	}
	return write(line)
}

func (c *consumer) next(seq int64) error {
	if seq <= c.seq {
		return fmt.Errorf("sequence number %d after %d", seq, c.seq)
	}
	c.seq = seq
	return nil
}

func write(line event) error {
	return json.NewEncoder(os.Stdout).Encode(line)
}
