package shell

import (
	"errors"
)

// A case of the task `hostile` is judged in a process of its own, and whatever befalls it there befell the
// peer. So nothing here recovers from a panic.

// HostileRepo makes the variant `repo` of the task: verify is the path that a peer's users take.
func HostileRepo[Key any](
	parseKey func(didKey string) (Key, error), checks []string,
	verify func(archive []byte, did string, key Key) error,
) Variant {
	return Variant{Checks: checks, Load: func(files []string) (Work, error) {
		archive, owner, err := readOwned(files)
		if err != nil {
			return nil, err
		}
		key, err := parseKey(owner.SigningKey)
		judge := func() error { return verify(archive, owner.DID, key) }
		return &caseWork{len(archive), judge}, err
	}}
}

// Hostile makes the variant `frames` of the task: the verdict is that on the last frame.
func (j Judge[Key]) Hostile(checks []string) Variant {
	return Variant{Checks: checks, Load: func(files []string) (Work, error) {
		file, owner, err := readOwned(files)
		if err != nil {
			return nil, err
		}
		frames, ok := splitFrames(file)
		if !ok || len(frames) == 0 {
			return nil, errors.New("not a file of frames")
		}
		key, err := j.ParseKey(owner.SigningKey)
		judge := func() error { return j.last(frames, newAccounts(map[string]Key{owner.DID: key})) }
		return &caseWork{len(file), judge}, err
	}}
}

// last judges all frames; those before the last set what is known of the account.
func (j Judge[Key]) last(frames [][]byte, accounts Accounts[Key]) (err error) {
	for _, frame := range frames {
		_, err = j.Frame(frame, accounts)
	}
	return err
}

type caseWork struct {
	bytes int
	judge func() error
}

func (w *caseWork) Size() (units, bytes int) {
	return 1, w.bytes
}

func (w *caseWork) Prove() (Proof, error) {
	if err := w.judge(); err != nil {
		return Proof{Counts: map[string]int{"accepted": 0, "refused": 1}, Reason: err.Error()}, nil
	}
	return Proof{Counts: map[string]int{"accepted": 1, "refused": 0}}, nil
}

func (w *caseWork) Pass() (Stages, error) {
	return nil, w.judge()
}
