package main

import (
	"bytes"
	"fmt"

	"github.com/jcalabro/atmos/cbor"
	"github.com/jcalabro/atmos/crypto"
	"github.com/jcalabro/atmos/mst"
	"github.com/jcalabro/atmos/repo"

	"wireproof/go-shell"
)

// repositories makes the checks of repo.LoadCompleteFromCAR, stage by stage. Nodes are decoded while the tree is walked.
var repositories = shell.Repositories[crypto.PublicKey, loaded]{
	ParseKey:  crypto.ParsePublicDIDKey,
	Parse:     parse,
	Signature: loaded.verifySignature,
	// As Repo.CheckComplete does, but the block of each record is used.
	Walk: func(found loaded, record func(block []byte)) error {
		return found.Tree.Walk(func(_ string, value cbor.CID) error {
			block, err := found.Store.GetBlock(value)
			if err == nil {
				record(block)
			}
			return err
		})
	},
	Rebuild: func(found loaded) (fmt.Stringer, error) {
		tree := mst.NewTree(mst.NewMemBlockStore())
		if err := found.Tree.Walk(tree.Insert); err != nil {
			return nil, err
		}
		return tree.RootCID()
	},
	Data: func(found loaded) fmt.Stringer { return found.commit.Data },
}

type loaded struct {
	commit *repo.Commit
	*repo.Repo
}

func parse(archive []byte) (loaded, error) {
	found, commit, err := repo.LoadFromCAR(bytes.NewReader(archive))
	return loaded{commit, found}, err
}

func (l loaded) verifySignature(did string, key crypto.PublicKey) error {
	if l.commit.DID != did {
		return fmt.Errorf("the commit is that of %s", l.commit.DID)
	}
	return l.commit.VerifySignature(key)
}

// verifyDownloaded makes the calls of its backfill engine with the options CheckComplete and VerifyCommits.
func verifyDownloaded(archive []byte, did string, key crypto.PublicKey) error {
	found, commit, err := repo.LoadCompleteFromCAR(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	return loaded{commit, found}.verifySignature(did, key)
}

// The order of keys, their layers and prefixes are not checked, nor whether a node is reached twice; a node's decoder
// refuses keys of its map out of order, but not trailing bytes.
var repoChecks = []string{"cid-sha256", "low-s", "complete"}
