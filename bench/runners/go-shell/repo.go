package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// Repositories is a peer's implementation of the task `repo`, stage by stage. Key and Repository are the types of its
// libraries.
type Repositories[Key, Repository any] struct {
	ParseKey func(didKey string) (Key, error)
	Parse    func(archive []byte) (Repository, error)
	// Signature is nil if the commit is that of the DID and signed by the key.
	Signature func(repository Repository, did string, key Key) error
	// Walk checks the tree and passes the block of each record to its callback.
	Walk func(repository Repository, record func(block []byte)) error
	// Rebuild builds a tree from the records and returns its root.
	Rebuild func(repository Repository) (fmt.Stringer, error)
	// Data is the root in the commit.
	Data func(repository Repository) fmt.Stringer
}

// Variants makes the variants of the task.
func (r Repositories[Key, Repository]) Variants(checks []string) map[string]Variant {
	return map[string]Variant{
		"total":         {Checks: checks, Load: r.loader(false)},
		"total/rebuild": {Checks: checks, Load: r.loader(true)},
	}
}

func (r Repositories[Key, Repository]) loader(rebuild bool) func([]string) (Work, error) {
	return func(files []string) (Work, error) {
		archive, owner, err := readOwned(files)
		if err != nil {
			return nil, err
		}
		key, err := r.ParseKey(owner.SigningKey)
		return &repoWork[Key, Repository]{r, rebuild, archive, owner.DID, key}, err
	}
}

type repoWork[Key, Repository any] struct {
	peer    Repositories[Key, Repository]
	rebuild bool
	archive []byte
	did     string
	key     Key
}

func (w *repoWork[Key, Repository]) Size() (units, bytes int) {
	return 1, len(w.archive)
}

func (w *repoWork[Key, Repository]) Prove() (Proof, error) {
	var records, recordBytes int
	found, _, err := w.verify(func(block []byte) {
		records++
		recordBytes += len(block)
	})
	if err != nil {
		return Proof{}, err
	}
	counts := map[string]any{
		"repositories": 1, "valid": 1, "records": records, "record_bytes": recordBytes, "root": found.data.String(),
	}
	if found.rebuilt != nil {
		counts["rebuilt_root"] = found.rebuilt.String()
	}
	return Proof{Counts: counts}, nil
}

func (w *repoWork[Key, Repository]) Pass() (Stages, error) {
	found, stages, err := w.verify(func(block []byte) { lastRecord = block })
	outcome = found
	return stages, err
}

// roots are the root in the commit and the root built from the records, nil if none was built.
type roots struct {
	data, rebuilt fmt.Stringer
}

func (w *repoWork[Key, Repository]) verify(record func(block []byte)) (found roots, stages Stages, err error) {
	defer refuseAtPanic(&err)
	stages, start := make(Stages), time.Now()
	ended := func(stage string) {
		now := time.Now()
		stages[stage], start = now.Sub(start).Nanoseconds(), now
	}
	repository, err := w.peer.Parse(w.archive)
	if err != nil {
		return found, nil, err
	}
	ended("parse")
	if err := w.peer.Signature(repository, w.did, w.key); err != nil {
		return found, nil, err
	}
	ended("signature")
	if err := w.peer.Walk(repository, record); err != nil {
		return found, nil, err
	}
	ended("walk")
	found.data = w.peer.Data(repository)
	if !w.rebuild {
		return found, stages, nil
	}
	if found.rebuilt, err = w.peer.Rebuild(repository); err != nil {
		return found, nil, err
	}
	if found.rebuilt.String() != found.data.String() {
		return found, nil, errors.New("the tree that was built anew has another root")
	}
	ended("rebuild")
	return found, stages, nil
}

var lastRecord []byte

// owner is the account data that accompanies its files.
type owner struct {
	DID        string `json:"did"`
	SigningKey string `json:"signing_key"`
	// Now is the time of verification of frames.
	Now time.Time `json:"now"`
}

// readOwned reads a file and its JSON.
func readOwned(files []string) (file []byte, beside owner, err error) {
	if len(files) != 2 {
		return nil, owner{}, errors.New("the files are two: what is to be verified, and a JSON with the key")
	}
	if file, err = os.ReadFile(files[0]); err != nil {
		return nil, owner{}, err
	}
	return file, beside, readJSON(files[1], &beside)
}

func readJSON(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
