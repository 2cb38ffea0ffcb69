package shell

import (
	"errors"
)

// A case of the task `hostile` runs in a separate process, and a crash of the process is the peer's result.
// Therefore nothing here recovers from a panic.

// HostileRepo returns the variant `repo` of the task: verify makes the calls of the peer's users.
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

// Hostile returns the variant `frames` of the task: the result is the verdict on the last frame.
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
		if j.SetNow != nil {
			j.SetNow(owner.Now)
		}
		key, err := j.ParseKey(owner.SigningKey)
		judge := func() error { return j.last(frames, newAccounts(map[string]Key{owner.DID: key})) }
		return &caseWork{len(file), judge}, err
	}}
}

// last verifies all frames; those before the last set the state of the account.
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
