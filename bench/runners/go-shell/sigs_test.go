package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A file of two commits of three entries each, on K-256 and P-256.
func twoCommits() []byte {
	commit := append([]byte("\xa3\x61a\x01\x63sig\x58\x40"), bytes.Repeat([]byte{9}, 64)...)
	commit = append(commit, "\x61b\x02"...)
	point := bytes.Repeat([]byte{5}, 33)
	file := []byte{0, 0, 0, 2}
	for _, curve := range []byte{1, 0} {
		file = append(file, curve, 0, byte(len(commit)))
		file = append(append(file, commit...), 0, 33)
		file = append(file, point...)
	}
	return file
}

func TestTheMessageIsTheMapWithoutItsSignature(t *testing.T) {
	commits, _ := splitSignedCommits(twoCommits())
	message, signature, err := cutSignature(commits[0].commit)
	if string(message) != "\xa2\x61a\x01\x61b\x02" || len(signature) != 64 || err != nil {
		t.Fatal(message, signature, err)
	}
	if _, _, err := cutSignature([]byte("\xa1\x63sig\x58\x40\x00")); err == nil {
		t.Fatal("half a signature was taken")
	}
}

func TestAFileOfCommitsThatEndsEarlyOrLateIsRefused(t *testing.T) {
	file := twoCommits()
	for length := range file {
		if _, ok := splitSignedCommits(file[:length]); ok {
			t.Error("accepted", length)
		}
	}
	if _, ok := splitSignedCommits(append(file, 0)); ok {
		t.Error("accepted a byte behind the end")
	}
}

func TestVerdictsAreCountedByCurve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "commits.bin")
	if err := os.WriteFile(path, twoCommits(), 0o600); err != nil {
		t.Fatal(err)
	}
	verifier := Verifier[Curve]{
		ParseKey: func(curve Curve, point []byte) (Curve, error) { return curve, nil },
		Verify:   func(_, _ []byte, curve Curve) bool { return curve == K256 },
		VerifyCommit: func(_ []byte, curve Curve) (bool, error) {
			if curve == P256 {
				panic("a fault of the library")
			}
			return true, nil
		},
	}
	want := map[string][5]int64{"full": {2, 1, 0, 0, 1}, "crypto": {2, 1, 0, 1, 0}, "preparsed": {2, 1, 0, 1, 0}}
	for name, variant := range verifier.Variants(nil, nil) {
		work, err := variant.Load([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		proof, _ := work.Prove()
		counts := proof.Counts.(map[string]int64)
		got := [5]int64{counts["commits"], counts["valid_k256"], counts["valid_p256"], counts["invalid"], counts["errors"]}
		if got != want[name] {
			t.Error(name, got)
		}
		if _, err := work.Pass(); err != nil {
			t.Error(err)
		}
	}
}
