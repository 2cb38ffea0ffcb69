package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jcalabro/atmos"
	"github.com/jcalabro/atmos/api/comatproto"
	"github.com/jcalabro/atmos/cbor"
	"github.com/jcalabro/atmos/crypto"
	"github.com/jcalabro/atmos/identity"
	"github.com/jcalabro/atmos/repo"
	"github.com/jcalabro/atmos/sync"
	"github.com/jcalabro/gt"

	"wireproof/go-shell"
)

// judge uses the Verifier with its strict options: a commit of the older protocol, or one whose operations do not lead to
// the previous root, is refused. By default both are accepted. The identity of each account is in the directory's cache;
// the Verifier parses its key for each commit.
var judge = shell.Judge[crypto.PublicKey]{
	ParseKey: crypto.ParsePublicDIDKey,
	Frame:    judgeFrame,
	Time:     timeOf,
	SetNow:   func(now time.Time) { verificationTime = now },
}

type accounts = shell.Accounts[crypto.PublicKey]

// The state of the pass, and the time of verification.
var (
	known            accounts
	verificationTime time.Time
)

func judgeFrame(frame []byte, of accounts) (shell.Verdict, error) {
	known = of
	kind, payload, err := decodeHeader(frame)
	if err != nil {
		return shell.Verdict{}, err
	}
	switch kind {
	case "#commit":
		var event comatproto.SyncSubscribeRepos_Commit
		if err := event.UnmarshalCBOR(payload); err != nil {
			return shell.Verdict{IsCommit: true}, err
		}
		account := known[event.Repo]
		isFirst := account != nil && account.Rev == ""
		return shell.Verdict{IsCommit: true, IsFirst: isFirst, Ops: len(event.Ops)}, judgeCommit(&event)
	case "#sync":
		var event comatproto.SyncSubscribeRepos_Sync
		if err := event.UnmarshalCBOR(payload); err != nil {
			return shell.Verdict{}, err
		}
		return shell.Verdict{}, judgeSync(&event)
	default:
		return shell.Verdict{}, decodeOther(kind, payload)
	}
}

func judgeCommit(event *comatproto.SyncSubscribeRepos_Commit) error {
	ops, err := stream.VerifyCommit(context.Background(), event)
	if err == nil && ops == nil {
		return errReplayed
	}
	return err
}

// judgeSync verifies the commit of the event and takes over its state. The Verifier downloads the repository instead, unless
// the root is that of the state.
func judgeSync(event *comatproto.SyncSubscribeRepos_Sync) error {
	account := known[event.DID]
	if account == nil {
		return errUnknownAccount
	}
	blocks, root, err := repo.LoadBlocksFromCAR(bytes.NewReader(event.Blocks))
	if err != nil {
		return err
	}
	block, err := blocks.GetBlock(root)
	if err != nil {
		return err
	}
	commit, err := repo.DecodeCommitCBOR(block)
	if err != nil {
		return err
	}
	if commit.DID != event.DID || commit.Rev != event.Rev {
		return errors.New("the event has another account or rev than the commit")
	}
	if account.Rev != "" && commit.Rev <= account.Rev {
		return errReplayed
	}
	if err := commit.VerifySignature(account.Key); err != nil {
		return err
	}
	return states{}.SaveChain(context.Background(), atmos.DID(commit.DID), sync.ChainState{Rev: commit.Rev, Data: commit.Data})
}

func timeOf(frame []byte) string {
	kind, payload, err := decodeHeader(frame)
	var event comatproto.SyncSubscribeRepos_Commit
	if err != nil || kind != "#commit" || event.UnmarshalCBOR(payload) != nil {
		return ""
	}
	return event.Time
}

var stream = newVerifier()

func newVerifier() *sync.Verifier {
	verifier, err := sync.NewVerifier(sync.VerifierOptions{
		Directory: &identity.Directory{
			Resolver:               keys{},
			Cache:                  identity.NewLRUCache(identity.InMemoryDirectoryCapacity, identity.InMemoryDirectoryTTL),
			SkipHandleVerification: true,
		},
		StateStore:         states{},
		Policy:             gt.Some(sync.PolicyError),
		LenientInversion:   gt.Some(false),
		LegacyCommitPolicy: gt.Some(sync.LegacyReject),
		Now:                gt.Some(func() time.Time { return verificationTime }),
	})
	if err != nil {
		panic(err)
	}
	return verifier
}

// keys resolves a DID to a document with the key of the account.
type keys struct{}

func (keys) ResolveDID(_ context.Context, did atmos.DID) (*identity.DIDDocument, error) {
	account := known[string(did)]
	if account == nil {
		return nil, errUnknownAccount
	}
	method := identity.VerificationMethod{
		ID: string(did) + "#atproto", Type: "Multikey", PublicKeyMultibase: account.Key.Multibase(),
	}
	return &identity.DIDDocument{ID: string(did), VerificationMethod: []identity.VerificationMethod{method}}, nil
}

func (keys) ResolveHandle(context.Context, atmos.Handle) (atmos.DID, error) {
	return "", errors.New("handles are not verified")
}

// states are the accounts' revs and roots as a store of the Verifier.
type states struct{}

func (states) LoadChain(_ context.Context, did atmos.DID) (*sync.ChainState, error) {
	account := known[string(did)]
	if account == nil {
		return nil, errUnknownAccount
	}
	if account.Rev == "" {
		return nil, nil
	}
	data, err := cbor.ParseCIDBytes([]byte(account.Data))
	return &sync.ChainState{Rev: account.Rev, Data: data}, err
}

func (states) SaveChain(_ context.Context, did atmos.DID, state sync.ChainState) error {
	account := known[string(did)]
	account.Rev, account.Data = state.Rev, string(state.Data.Bytes())
	return nil
}

func (states) LoadHosting(context.Context, atmos.DID) (*sync.HostingState, error) { return nil, nil }
func (states) SaveHosting(context.Context, atmos.DID, sync.HostingState) error    { return nil }
func (states) Delete(context.Context, atmos.DID) error                            { return nil }

var (
	errUnknownAccount = fmt.Errorf("an account whose key is not known")
	errReplayed       = errors.New("not newer than the state")
)

var commitChecks = []string{"cid-sha256", "low-s", "event-fields", "inversion", "clock"}
