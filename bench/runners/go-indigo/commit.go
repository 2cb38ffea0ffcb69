package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	comatproto "github.com/bluesky-social/indigo/api/atproto"
	"github.com/bluesky-social/indigo/atproto/atcrypto"
	"github.com/bluesky-social/indigo/atproto/repo"
	"github.com/bluesky-social/indigo/atproto/syntax"

	"wireproof/go-shell"
)

// judge makes the calls of Tap for each frame (ProcessCommit and ProcessSync of cmd/tap), without its database. An
// event that Tap skips, or that makes it fetch the repository again, is refused. The relay makes the same calls and
// adds limits of size, the clock, and flags that are no longer used; but where the operations cannot be undone, or do
// not lead to the stored state, it logs a line and forwards the event.
var judge = shell.Judge[atcrypto.PublicKey]{ParseKey: atcrypto.ParsePublicDIDKey, Frame: judgeFrame}

type accounts = shell.Accounts[atcrypto.PublicKey]

func judgeFrame(frame []byte, known accounts) (shell.Verdict, error) {
	kind, err := decodeHeader(frame)
	if err != nil {
		return shell.Verdict{}, err
	}
	switch kind {
	case "#commit":
		var event comatproto.SyncSubscribeRepos_Commit
		if err := event.UnmarshalCBOR(reader); err != nil {
			return shell.Verdict{IsCommit: true}, fmt.Errorf("payload: %w", err)
		}
		account := known[event.Repo]
		isFirst := account != nil && account.Rev == ""
		return shell.Verdict{IsCommit: true, IsFirst: isFirst, Ops: len(event.Ops)}, judgeCommit(&event, known)
	case "#sync":
		var event comatproto.SyncSubscribeRepos_Sync
		if err := event.UnmarshalCBOR(reader); err != nil {
			return shell.Verdict{}, fmt.Errorf("payload: %w", err)
		}
		return shell.Verdict{}, judgeSync(&event, known)
	default:
		return shell.Verdict{}, decodeOther(kind)
	}
}

func judgeCommit(event *comatproto.SyncSubscribeRepos_Commit, known accounts) error {
	account := known[event.Repo]
	if account == nil {
		return errUnknownAccount
	}
	if account.Rev != "" && event.Rev <= account.Rev {
		return errReplayed
	}
	if _, err := verifySignature(event.Blocks, known); err != nil {
		return err
	}
	repository, err := repo.VerifyCommitMessage(context.Background(), event)
	if err != nil {
		return err
	}
	for _, op := range event.Ops {
		if _, _, err := syntax.ParseRepoPath(op.Path); err != nil {
			return fmt.Errorf("invalid record path: %w", err)
		}
	}
	data, err := repository.MST.RootCID()
	if err != nil {
		return err
	}
	before := account.Data
	account.Rev, account.Data = event.Rev, data.String() // also the state of Tap after it has fetched again
	if event.PrevData != nil && before != "" && event.PrevData.String() != before {
		return errors.New("repo state desynchronized")
	}
	return nil
}

func judgeSync(event *comatproto.SyncSubscribeRepos_Sync, known accounts) error {
	account := known[event.Did]
	if account == nil {
		return errUnknownAccount
	}
	commit, err := verifySignature(event.Blocks, known)
	if err != nil {
		return err
	}
	if account.Rev != "" && commit.Rev <= account.Rev {
		return errReplayed
	}
	account.Rev, account.Data = commit.Rev, commit.Data.String()
	return nil
}

// verifySignature is repo.VerifyCommitSignatureFromCar with the key that was parsed before.
func verifySignature(blocks []byte, known accounts) (*repo.Commit, error) {
	commit, _, err := repo.LoadCommitFromCAR(context.Background(), bytes.NewReader(blocks))
	if err != nil {
		return nil, err
	}
	if err := commit.VerifyStructure(); err != nil {
		return nil, err
	}
	account := known[commit.DID]
	if account == nil {
		return nil, errUnknownAccount
	}
	return commit, commit.VerifySignature(account.Key)
}

var (
	errUnknownAccount = errors.New("an account whose key is not known")
	errReplayed       = errors.New("skipping replayed event")
)

// No `event-fields`: rev and DID are compared with the commit, its CID is not. No `chain`: `prevData` is compared
// with the previous commit, `since` is not checked. No `clock`.
var commitChecks = []string{"cid-sha256", "low-s", "op-records", "inversion"}
