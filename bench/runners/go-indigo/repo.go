package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/bluesky-social/indigo/atproto/atcrypto"
	"github.com/bluesky-social/indigo/atproto/repo"
	"github.com/bluesky-social/indigo/atproto/repo/mst"
	"github.com/ipfs/go-cid"

	"wireproof/go-shell"
)

// repositories makes every check that indigo has for a repository, though its own programs make fewer
// (hostile.go). repo.LoadRepoFromCAR decodes the commit and all nodes as well, hence in the stage `parse`.
var repositories = shell.Repositories[atcrypto.PublicKey, loaded]{
	ParseKey: atcrypto.ParsePublicDIDKey,
	Parse: func(archive []byte) (loaded, error) {
		commit, repository, err := repo.LoadRepoFromCAR(context.Background(), bytes.NewReader(archive))
		return loaded{commit, repository}, err
	},
	Signature: func(repository loaded, did string, key atcrypto.PublicKey) error {
		if repository.commit.DID != did {
			return fmt.Errorf("the commit is that of %s", repository.commit.DID)
		}
		return repository.commit.VerifySignature(key)
	},
	Walk:    walk,
	Rebuild: rebuild,
	Data:    func(repository loaded) fmt.Stringer { return repository.commit.Data },
}

type loaded struct {
	commit *repo.Commit
	*repo.Repo
}

// walk first checks that the tree is complete: Verify and Walk skip a missing node.
func walk(repository loaded, record func(block []byte)) error {
	if repository.MST.IsPartial() {
		return errors.New("a node of the tree is missing")
	}
	if err := repository.MST.Verify(); err != nil {
		return err
	}
	return repository.MST.Walk(func(_ []byte, value cid.Cid) error {
		block, err := repository.RecordStore.Get(context.Background(), value)
		if err != nil {
			return err
		}
		record(block.RawData())
		return nil
	})
}

func rebuild(repository loaded) (fmt.Stringer, error) {
	tree := mst.NewEmptyTree()
	err := repository.MST.Walk(func(key []byte, value cid.Cid) error {
		_, err := tree.Insert(key, value)
		return err
	})
	if err != nil {
		return nil, err
	}
	return tree.RootCID()
}

// No `mst-order`: Verify compares a key with the previous keys of its node and above, but not with the last key
// of the previous subtree. Therefore no `mst-once` either. A prefix of any length is accepted.
var repoChecks = []string{"cid-sha256", "low-s", "mst-layer", "mst-shape", "complete"}
