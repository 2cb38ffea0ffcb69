package main

import (
	"bytes"
	"context"

	"github.com/bluesky-social/indigo/atproto/atcrypto"
	"github.com/bluesky-social/indigo/atproto/atdata"
	"github.com/bluesky-social/indigo/atproto/repo"
	"github.com/bluesky-social/indigo/atproto/syntax"
	"github.com/ipfs/go-cid"
)

// backfill makes the calls of Tap for the repository of an account (doResync of cmd/tap). Unlike go-indigo's row of
// the task `repo`, it neither calls the tree's Verify nor compares the DID. For a record with a wrong path, block or
// encoding Tap logs a line; the repository is still `active`.
func backfill(archive []byte, _ string, key atcrypto.PublicKey) error {
	ctx := context.Background()
	commit, repository, err := repo.LoadRepoFromCAR(ctx, bytes.NewReader(archive))
	if err != nil {
		return err
	}
	if err := commit.VerifySignature(key); err != nil {
		return err
	}
	return repository.MST.Walk(func(path []byte, value cid.Cid) error {
		if _, _, err := syntax.ParseRepoPath(string(path)); err != nil {
			return nil
		}
		if block, err := repository.RecordStore.Get(ctx, value); err == nil {
			record, _ = atdata.UnmarshalCBOR(block.RawData())
		}
		return nil
	})
}

// record holds the last record in a package variable, so that the compiler cannot remove the work.
var record map[string]any
