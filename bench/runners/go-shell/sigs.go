package shell

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Verifier is a peer's implementation of the task `sigs`. A Key is a public key in the type of its libraries.
type Verifier[Key any] struct {
	// ParseKey parses a compressed point.
	ParseKey func(curve Curve, point []byte) (Key, error)
	// Verify reports whether the signature, 64 bytes r‖s, is the key's over the SHA-256 of the message.
	Verify func(message, signature []byte, key Key) bool
	// VerifyCommit decodes a commit and reports whether its signature is that of the key. An error means
	// that the commit could not be decoded.
	VerifyCommit func(commit []byte, key Key) (bool, error)
}

// Curve is the curve of a key.
type Curve byte

const (
	P256 Curve = iota
	K256
)

// Variants makes the variants of the task: whole are the checks of the measured path where it has to
// decode, given those where it does not.
func (v Verifier[Key]) Variants(whole, given []string) map[string]Variant {
	return map[string]Variant{
		"full":      {Checks: whole, Load: v.loader(v.full)},
		"crypto":    {Checks: given, Load: v.loader(v.crypto)},
		"preparsed": {Checks: given, Load: v.loader(v.preparsed)},
	}
}

// check does the measured work of a unit.
type check func() (bool, error)

func (v Verifier[Key]) full(unit signedCommit) (check, error) {
	return func() (bool, error) {
		key, err := v.ParseKey(unit.curve, unit.point)
		if err != nil {
			return false, err
		}
		return v.VerifyCommit(unit.commit, key)
	}, nil
}

func (v Verifier[Key]) crypto(unit signedCommit) (check, error) {
	message, signature, err := cutSignature(unit.commit)
	return func() (bool, error) {
		key, err := v.ParseKey(unit.curve, unit.point)
		if err != nil {
			return false, err
		}
		return v.Verify(message, signature, key), nil
	}, err
}

func (v Verifier[Key]) preparsed(unit signedCommit) (check, error) {
	message, signature, err := cutSignature(unit.commit)
	if err != nil {
		return nil, err
	}
	key, err := v.ParseKey(unit.curve, unit.point)
	return func() (bool, error) { return v.Verify(message, signature, key), nil }, err
}

func (v Verifier[Key]) loader(prepare func(signedCommit) (check, error)) func([]string) (Work, error) {
	return func(files []string) (Work, error) {
		commits, err := readSignedCommits(files)
		work := &sigsWork{commits: commits}
		for _, commit := range commits {
			check, err := prepare(commit)
			if err != nil {
				check = func() (bool, error) { return false, err }
			}
			work.checks = append(work.checks, check)
		}
		return work, err
	}
}

type sigsWork struct {
	commits []signedCommit
	checks  []check
}

func (w *sigsWork) Size() (units, bytes int) {
	for _, commit := range w.commits {
		bytes += len(commit.commit)
	}
	return len(w.commits), bytes
}

func (w *sigsWork) Prove() (Proof, error) {
	counts := map[string]int64{
		"commits": int64(len(w.commits)), "valid_k256": 0, "valid_p256": 0, "invalid": 0, "errors": 0,
	}
	for index, check := range w.checks {
		valid, err := check.guarded()
		switch {
		case err != nil:
			if counts["errors"]++; counts["errors"] <= toldRefusals {
				fmt.Fprintf(os.Stderr, "commit %d refused: %v\n", index, err)
			}
		case !valid:
			counts["invalid"]++
		case w.commits[index].curve == K256:
			counts["valid_k256"]++
		default:
			counts["valid_p256"]++
		}
	}
	return Proof{Counts: counts}, nil
}

func (w *sigsWork) Pass() (Stages, error) {
	for _, check := range w.checks {
		verdict, _ = check.guarded()
	}
	return nil, nil
}

// guarded treats a panic of a peer's library as a verification error of the commit.
func (c check) guarded() (valid bool, err error) {
	defer refuseAtPanic(&err)
	return c()
}

// verdict holds the last verdict in a package variable, so that the compiler cannot remove the work.
var verdict bool

type signedCommit struct {
	curve         Curve
	commit, point []byte
}

func readSignedCommits(files []string) ([]signedCommit, error) {
	var commits []signedCommit
	for _, path := range files {
		file, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		fresh, ok := splitSignedCommits(file)
		if !ok {
			return nil, fmt.Errorf("%s: not a file of signed commits", path)
		}
		commits = append(commits, fresh...)
	}
	return commits, nil
}

// splitSignedCommits reads [u32 BE count], then [u8 curve][u16 BE length][commit][u16 BE length][key] for each.
func splitSignedCommits(file []byte) (commits []signedCommit, ok bool) {
	count, rest, ok := cutUint32(file)
	for ; ok && count > 0; count-- {
		if len(rest) == 0 || rest[0] > byte(K256) {
			return nil, false
		}
		unit := signedCommit{curve: Curve(rest[0])}
		if unit.commit, rest, ok = cutPiece(rest[1:]); !ok {
			return nil, false
		}
		if unit.point, rest, ok = cutPiece(rest); !ok || len(unit.point) != 33 {
			return nil, false
		}
		commits = append(commits, unit)
	}
	return commits, ok && len(rest) == 0
}

func cutPiece(bytes []byte) (piece, rest []byte, ok bool) {
	if len(bytes) < 2 {
		return nil, nil, false
	}
	length, rest := int(binary.BigEndian.Uint16(bytes)), bytes[2:]
	if length > len(rest) {
		return nil, nil, false
	}
	return rest[:length:length], rest[length:], true
}
