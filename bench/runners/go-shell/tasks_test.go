package shell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Two records, `b` and then `a` in the shuffled order, and three lookups.
func twoRecords() []byte {
	cid := func(digest string) string { return "\x01\x71\x12\x20" + strings.Repeat(digest, 32) }
	return []byte("\x00\x00\x00\x02\x00\x01a" + cid("\x05") + "\x00\x01b" + cid("\xff") +
		"\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x00" +
		"\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x00" +
		"\x00\x00\x00\x06" + operationBytes(0, 1, 1) + operationBytes(1, 1, 0) + operationBytes(2, 1, 1) + operationBytes(3, 1, 1) +
		operationBytes(0, 0, 0) + operationBytes(3, 0, 0))
}

func operationBytes(kind, key, value byte) string {
	return string([]byte{kind, 0, 0, 0, key, 0, 0, 0, value})
}

func TestAFileOfRecordsThatEndsEarlyOrLateIsRefused(t *testing.T) {
	file := twoRecords()
	for length := range file {
		if _, ok := splitRecords(file[:length]); ok {
			t.Error("accepted", length)
		}
	}
	if _, ok := splitRecords(append(file, 0)); ok {
		t.Error("accepted a byte behind the end")
	}
}

func TestAnIndexOfNoRecordIsRefused(t *testing.T) {
	file := twoRecords()
	file[len(file)-1] = 2
	if _, ok := splitRecords(file); ok {
		t.Error("accepted")
	}
}

func TestATreeIsGivenItsRecordsInTheOrderAskedFor(t *testing.T) {
	trees := Trees[string, map[string]string, map[string]string]{
		ParseCID: func(cid []byte) (string, error) { return string(cid), nil },
		Insert: func(keys [][]byte, values []string) (map[string]string, error) {
			tree := map[string]string{"root": string(keys[0])}
			for index, key := range keys {
				tree[string(key)] = values[index]
			}
			return tree, nil
		},
		Gather: func(keys [][]byte, values []string) map[string]string { return map[string]string{"root": "all"} },
		Bulk:   func(records map[string]string) (map[string]string, error) { return records, nil },
		Root:   func(tree map[string]string) (fmt.Stringer, error) { return text(tree["root"]), nil },
		Get: func(tree map[string]string, key []byte) (*string, error) {
			if cid, found := tree[string(key)]; found {
				return &cid, nil
			}
			return nil, nil
		},
		Head:  func(cid string) uint32 { return binary.BigEndian.Uint32([]byte(cid[4:])) },
		Bytes: func(root fmt.Stringer) []byte { return []byte("\x01\x71\x12\x20" + root.String() + "\x00\x00\x00") },
		Empty: func() map[string]string { return map[string]string{"root": "-"} },
		Put: func(tree map[string]string, key []byte, value string) error {
			tree[string(key)], tree["root"] = value, string(key)
			return nil
		},
		Remove: func(tree map[string]string, key []byte) error {
			delete(tree, string(key))
			return nil
		},
	}
	want := map[string]map[string]any{
		"insert-root/ascending": {"records": 2, "root": "a"},
		"insert-root/shuffled":  {"records": 2, "root": "b"},
		"bulk":                  {"records": 2, "root": "all"},
		// 2 × 0xffffffff + 0x05050505
		"lookup": {"lookups": 3, "found": 3, "lookup_checksum": uint32(0x05050503)},
		"mixed": {
			"operations": 6, "hits": 1, "hit_checksum": uint32(0x05050505), "root_checksum": uint32(0x61000000), "last_root": "a",
		},
	}
	for name, variant := range trees.Variants() {
		work, err := variant.Load([]string{written(t, twoRecords())})
		if err != nil {
			t.Fatal(err)
		}
		proof, err := work.Prove()
		if err != nil || !maps.Equal(proof.Counts.(map[string]any), want[name]) {
			t.Error(name, proof, err)
		}
		if _, err := work.Pass(); err != nil {
			t.Error(name, err)
		}
	}
}

func TestARepositoryPassesItsStages(t *testing.T) {
	peer := Repositories[string, string]{
		ParseKey:  func(didKey string) (string, error) { return strings.TrimPrefix(didKey, "did:key:"), nil },
		Parse:     func(archive []byte) (string, error) { return string(archive), nil },
		Signature: func(_, did, key string) error { return unless(did == "did:plc:a" && key == "z") },
		Walk: func(repository string, record func([]byte)) error {
			record([]byte(repository[:1]))
			record([]byte(repository[1:]))
			return nil
		},
		Rebuild: func(repository string) (fmt.Stringer, error) { return text(repository[:4]), nil },
		Data:    func(string) fmt.Stringer { return text("root") },
	}
	beside := written(t, []byte(`{"did":"did:plc:a","signing_key":"did:key:z","records":9}`))
	stages := map[string]int{"total": 3, "total/rebuild": 4}
	for name, variant := range peer.Variants(nil) {
		work, err := variant.Load([]string{written(t, []byte("root!")), beside})
		if err != nil {
			t.Fatal(err)
		}
		proof, err := work.Prove()
		counts, _ := proof.Counts.(map[string]any)
		if err != nil || counts["records"] != 2 || counts["record_bytes"] != 5 || counts["root"] != "root" {
			t.Error(name, proof, err)
		}
		if passed, err := work.Pass(); err != nil || len(passed) != stages[name] {
			t.Error(name, passed, err)
		}
	}
	work, _ := peer.Variants(nil)["total/rebuild"].Load([]string{written(t, []byte("another")), beside})
	if _, err := work.Prove(); err == nil {
		t.Error("another root was taken")
	}
}

// testJudge takes frames `a`, `b`, … of one account in their order, of which `#` is no commit and `!` a fault.
var testJudge = Judge[string]{
	ParseKey: func(didKey string) (string, error) { return didKey, nil },
	Frame: func(frame []byte, accounts Accounts[string]) (Verdict, error) {
		account, rev := accounts["did:plc:a"], string(frame)
		switch {
		case rev == "#":
			return Verdict{}, nil
		case rev == "!":
			panic("a fault of the library")
		case account == nil || account.Key != "did:key:z" || rev <= account.Rev:
			return Verdict{IsCommit: true}, errors.New("stale")
		}
		isFirst := account.Rev == ""
		account.Rev = rev
		return Verdict{IsCommit: true, IsFirst: isFirst, Ops: 2}, nil
	},
}

func TestWhatIsKnownOfAnAccountStartsAnewWithEachPass(t *testing.T) {
	keys := written(t, []byte(`{"did:plc:a":"did:key:z"}`))
	work, err := testJudge.Variants(nil)["full"].Load([]string{written(t, framed("a", "#", "b", "a", "c")), keys})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"frames": 5, "commits": 4, "accepted": 2, "first_sighting": 1, "chain_broken": 0, "refused": 1, "ops": 6,
	}
	for range 2 {
		proof, err := work.Prove()
		if err != nil || !maps.Equal(proof.Counts.(map[string]int), want) {
			t.Error(proof, err)
		}
		if _, err := work.Pass(); err != nil {
			t.Error(err)
		}
	}
}

func TestTheVerdictOnFramesIsThatOnTheLast(t *testing.T) {
	for frames, accepted := range map[string]int{"ab": 1, "aab": 1, "aba": 0} {
		proof, err := hostile(t, frames).Prove()
		counts := proof.Counts.(map[string]int)
		if err != nil || counts["accepted"] != accepted || counts["refused"] != 1-accepted {
			t.Error(frames, proof, err)
		}
		if (proof.Reason == "") != (accepted == 1) {
			t.Error(frames, proof.Reason)
		}
	}
}

func TestAPanicOfAPeerEndsAHostileCase(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the panic was caught")
		}
	}()
	_, _ = hostile(t, "!").Prove()
}

func TestTheReasonOfARefusalIsAnswered(t *testing.T) {
	runner := Runner{Tasks: map[string]map[string]Variant{"hostile": {"repo": HostileRepo(
		func(didKey string) (string, error) { return didKey, nil }, nil,
		func([]byte, string, string) error { return errors.New("no") },
	)}}}
	archive, beside := written(t, []byte("car")), written(t, []byte(`{"did":"","signing_key":""}`))
	requests := `{"cmd":"describe"}
{"cmd":"load","task":"hostile","variant":"repo","files":["` + archive + `","` + beside + `"]}
{"cmd":"prove"}`
	var answers strings.Builder
	if err := serve(runner, strings.NewReader(requests), &answers); err != nil {
		t.Fatal(err)
	}
	want := `{"engine":"","language":"go","tasks":{"hostile":{"repo":[]}},"version":""}
{"bytes":3,"units":1}
{"counts":{"accepted":0,"refused":1},"reason":"no"}
`
	if answers.String() != want {
		t.Error(answers.String())
	}
}

func hostile(t *testing.T, frames string) Work {
	beside := written(t, []byte(`{"did":"did:plc:a","signing_key":"did:key:z"}`))
	file := written(t, framed(slices.Collect(strings.SplitSeq(frames, ""))...))
	work, err := testJudge.Hostile(nil).Load([]string{file, beside})
	if err != nil {
		t.Fatal(err)
	}
	return work
}

func framed(frames ...string) []byte {
	file := []byte{0, 0, 0, byte(len(frames))}
	for _, frame := range frames {
		file = append(append(file, 0, 0, 0, byte(len(frame))), frame...)
	}
	return file
}

func written(t *testing.T, bytes []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, bytes, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func unless(holds bool) error {
	if holds {
		return nil
	}
	return errors.New("refused")
}

type text string

func (t text) String() string { return string(t) }
