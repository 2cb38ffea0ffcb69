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

// backfill is what Tap does with the repository of an account (doResync of cmd/tap), and what its users get: the
// tree's Verify, which go-indigo's row of the task `repo` calls, is not among it, nor is the DID compared. A record
// whose path, block or encoding is wrong is a line in Tap's log; the repository counts as `active` all the same.
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

// record is where anyone could read the last one, so that the compiler cannot leave it out.
var record map[string]any
