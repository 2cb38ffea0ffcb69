package shell

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Judge is a peer's implementation of the task `commit`. A Key is a public key in the type of its libraries.
type Judge[Key any] struct {
	ParseKey func(didKey string) (Key, error)
	// Frame verifies a frame and stores the new state of its account if it is accepted.
	Frame func(frame []byte, accounts Accounts[Key]) (Verdict, error)
	// Time returns the `time` of an event, and SetNow receives the time of verification; both nil for a peer without a clock.
	Time   func(frame []byte) string
	SetNow func(now time.Time)
}

// Accounts are those whose keys are given, by DID.
type Accounts[Key any] map[string]*Account[Key]

// Account is the stored state of an account.
type Account[Key any] struct {
	Key Key
	// Rev and data of its newest accepted commit, in the peer's own encoding; empty before the first.
	Rev, Data string
}

// Verdict is the result for a frame. A refused frame has an error.
type Verdict struct {
	IsCommit bool
	// IsFirst says that no state of the account was stored before.
	IsFirst bool
	Ops     int
}

// Variants makes the variants of the task.
func (j Judge[Key]) Variants(checks []string) map[string]Variant {
	return map[string]Variant{"full": {Checks: checks, Load: j.load}}
}

func (j Judge[Key]) load(files []string) (Work, error) {
	if len(files) != 2 {
		return nil, errors.New("the files are two: frames, and the accounts' keys")
	}
	frames, err := readFrames(files[:1])
	if err != nil {
		return nil, err
	}
	var spelled map[string]string
	if err := readJSON(files[1], &spelled); err != nil {
		return nil, err
	}
	if j.SetNow != nil {
		j.SetNow(j.dayAfterNewest(frames))
	}
	keys, err := j.parseKeys(spelled)
	return &commitWork[Key]{j, frames, keys}, err
}

func (j Judge[Key]) dayAfterNewest(frames [][]byte) (newest time.Time) {
	for _, frame := range frames {
		if at, err := time.Parse(time.RFC3339, j.Time(frame)); err == nil && at.After(newest) {
			newest = at
		}
	}
	return newest.Add(24 * time.Hour)
}

func (j Judge[Key]) parseKeys(spelled map[string]string) (map[string]Key, error) {
	keys := make(map[string]Key, len(spelled))
	for did, didKey := range spelled {
		key, err := j.ParseKey(didKey)
		if err != nil {
			return nil, fmt.Errorf("the key of %s: %w", did, err)
		}
		keys[did] = key
	}
	return keys, nil
}

type commitWork[Key any] struct {
	judge  Judge[Key]
	frames [][]byte
	keys   map[string]Key
}

func (w *commitWork[Key]) Size() (units, bytes int) {
	for _, frame := range w.frames {
		bytes += len(frame)
	}
	return len(w.frames), bytes
}

func (w *commitWork[Key]) Prove() (Proof, error) {
	var commits, accepted, first, refused, ops int
	accounts := newAccounts(w.keys)
	for index, frame := range w.frames {
		verdict, err := w.judged(frame, accounts)
		if !verdict.IsCommit {
			continue
		}
		commits++
		if err == nil {
			if verdict.IsFirst {
				first++
			} else {
				accepted++
			}
			ops += verdict.Ops
		} else if refused++; refused <= toldRefusals {
			fmt.Fprintf(os.Stderr, "frame %d refused: %v\n", index, err)
		}
	}
	return Proof{Counts: map[string]int{
		"frames": len(w.frames), "commits": commits, "accepted": accepted, "first_sighting": first,
		"chain_broken": 0, "refused": refused, "ops": ops,
	}}, nil
}

func (w *commitWork[Key]) Pass() (Stages, error) {
	accounts := newAccounts(w.keys)
	for _, frame := range w.frames {
		lastVerdict, _ = w.judged(frame, accounts)
	}
	return nil, nil
}

// judged treats a panic of a peer's library as a refusal of the frame, like the peer's users would.
func (w *commitWork[Key]) judged(frame []byte, accounts Accounts[Key]) (verdict Verdict, err error) {
	defer refuseAtPanic(&err)
	return w.judge.Frame(frame, accounts)
}

// newAccounts returns accounts with keys and without state.
func newAccounts[Key any](keys map[string]Key) Accounts[Key] {
	accounts := make(Accounts[Key], len(keys))
	for did, key := range keys {
		accounts[did] = &Account[Key]{Key: key}
	}
	return accounts
}

var lastVerdict Verdict
