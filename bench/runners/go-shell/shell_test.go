package shell

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFramesAreSplitByTheirLengths(t *testing.T) {
	frames, ok := splitFrames([]byte{0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 0})
	if !ok || len(frames) != 2 || string(frames[0]) != "\x01\x02\x03" || len(frames[1]) != 0 {
		t.Fatal(frames, ok)
	}
}

func TestAFileThatEndsEarlyOrLateIsRefused(t *testing.T) {
	file := []byte{0, 0, 0, 1, 0, 0, 0, 2, 1, 2, 3}
	for _, length := range []int{0, 3, 4, 7, 9, 11} {
		if _, ok := splitFrames(file[:length]); ok {
			t.Error("accepted", length)
		}
	}
	if _, ok := splitFrames(file[:10]); !ok {
		t.Error("refused the whole one")
	}
}

// link is a type of a peer's library.
type link []byte

func countLink(value any, counts *Counts) {
	if _, isLink := value.(link); isLink {
		counts.Links++
	}
}

func TestValuesOfGoAreCountedWithAllThatTheyContainAndOthersByThePeer(t *testing.T) {
	var counts Counts
	counts.Value(map[string]any{
		"a":   []any{int64(-1), uint64(1), 1.5, true, nil},
		"bcd": map[string]any{"e": "fg", "h": []byte{0}},
		"i":   link{1},
	}, countLink)
	want := Counts{
		Maps: 2, MapEntries: 5, Arrays: 1, ArrayItems: 5, TextBytes: 9, ByteStringBytes: 1, Links: 1,
		Integers: 2, Floats: 1, Booleans: 1, Nulls: 1,
	}
	if counts != want {
		t.Error(counts)
	}
}

func TestAFrameThatFailsCountsInErrorsAndFramesAlone(t *testing.T) {
	decoder := Decoder{
		Frame: func(frame []byte, emit func(Block)) error {
			emit(Block{Decoded: true, Value: link(frame)})
			switch frame[0] {
			case 1:
				return errors.New("refused")
			case 2:
				panic("a fault of the library")
			}
			return nil
		},
		Count: countLink,
	}
	path := filepath.Join(t.TempDir(), "frames.bin")
	file := []byte{0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 2}
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	runner := Runner{Tasks: map[string]map[string]Variant{
		"decode": {"unverified": decoder.Variant([]string{"utf8"}, "array_items", "floats")},
	}}
	requests := `{"cmd":"pass"}
{"cmd":"describe"}
{"cmd":"load","task":"decode","variant":"unverified","files":["` + path + `"]}
{"cmd":"prove"}`
	var answers strings.Builder
	if err := serve(runner, strings.NewReader(requests), &answers); err != nil {
		t.Fatal(err)
	}
	want := `{"error":"nothing is loaded"}
{"engine":"","language":"go","tasks":{"decode":{"unverified":["utf8"]}},"version":""}
{"bytes":3,"units":3}
{"counts":{"arrays":0,"blocks":1,"booleans":0,"byte_string_bytes":0,"errors":2,"frames":3,` +
		`"integers":0,"links":1,"map_entries":0,"maps":0,"nulls":0,"text_bytes":0}}
`
	if answers.String() != want {
		t.Error(answers.String())
	}
}
