// Verifies with indigo: a repository and its commit frames, or the events of a service.
//
//	verify DID KEY REPOSITORY.car FRAME...
//	verify consume SERVICE DIRECTORY CURSOR
//	verify labels
//
// KEY is a did:key. Frames are the account's `#commit` events in order, from its first on; the repository is its export after the last
// one. Prints "ok", or the first fault and exits with 1. Of a service, prints each verified event as a line of JSON, and the fault that
// ends it as a line too. It ends with its connection.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	comatproto "github.com/bluesky-social/indigo/api/atproto"
	"github.com/bluesky-social/indigo/atproto/atcrypto"
	"github.com/bluesky-social/indigo/atproto/repo"
	"github.com/bluesky-social/indigo/events"
	"github.com/ipfs/go-cid"
)

func main() {
	if args := os.Args[1:]; len(args) == 4 && args[0] == "consume" {
		err := consume(args[1], args[2], args[3])
		if isLost(err) {
			fmt.Fprintln(os.Stderr, err)
		} else {
			_ = write(event{Kind: "error", Message: fmt.Sprint(err)})
		}
		os.Exit(1)
	}
	if args := os.Args[1:]; len(args) == 1 && args[0] == "labels" {
		if err := judgeLabels(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("ok")
}

func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: verify DID KEY REPOSITORY.car FRAME...")
	}
	did, archive, frames := args[0], args[2], args[3:]
	key, err := atcrypto.ParsePublicDIDKey(args[1])
	if err != nil {
		return err
	}
	data, err := verifyRepository(did, key, archive)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	var last string
	for _, frame := range frames {
		if last, err = verifyFrame(did, key, frame, last); err != nil {
			return fmt.Errorf("%s: %w", frame, err)
		}
	}
	if len(frames) > 0 && last != data {
		return fmt.Errorf("the repository has root %s, the last frame %s", data, last)
	}
	return nil
}

// verifyRepository returns the root of the tree.
func verifyRepository(did string, key atcrypto.PublicKey, path string) (string, error) {
	archive, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	ctx := context.Background()
	commit, repository, err := repo.LoadRepoFromCAR(ctx, bytes.NewReader(archive))
	if err != nil {
		return "", err
	}
	if commit.DID != did {
		return "", fmt.Errorf("the commit names %s", commit.DID)
	}
	if err := commit.VerifySignature(key); err != nil {
		return "", err
	}
	if repository.MST.IsPartial() {
		return "", fmt.Errorf("a node of the tree is missing")
	}
	if err := repository.MST.Verify(); err != nil {
		return "", err
	}
	hasRecord := func(_ []byte, value cid.Cid) error {
		_, err := repository.RecordStore.Get(ctx, value)
		return err
	}
	return commit.Data.String(), repository.MST.Walk(hasRecord)
}

// verifyFrame checks one event after the event whose tree has the root `before`, and returns its own root.
func verifyFrame(did string, key atcrypto.PublicKey, path, before string) (string, error) {
	frame, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	reader := bytes.NewReader(frame)
	var header events.EventHeader
	if err := header.UnmarshalCBOR(reader); err != nil {
		return "", err
	}
	var event comatproto.SyncSubscribeRepos_Commit
	if err := event.UnmarshalCBOR(reader); err != nil {
		return "", err
	}
	if header.MsgType != "#commit" || event.Repo != did {
		return "", fmt.Errorf("a %s event of %s", header.MsgType, event.Repo)
	}
	ctx := context.Background()
	commit, _, err := repo.LoadCommitFromCAR(ctx, bytes.NewReader(event.Blocks))
	if err != nil {
		return "", err
	}
	if err := commit.VerifyStructure(); err != nil {
		return "", err
	}
	if err := commit.VerifySignature(key); err != nil {
		return "", err
	}
	repository, err := repo.VerifyCommitMessage(ctx, &event)
	if err != nil {
		return "", err
	}
	if before != "" && (event.PrevData == nil || event.PrevData.String() != before) {
		return "", fmt.Errorf("prevData is not the root of the previous event, %s", before)
	}
	root, err := repository.MST.RootCID()
	if err != nil {
		return "", err
	}
	return root.String(), nil
}
