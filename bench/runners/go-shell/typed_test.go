package shell

import (
	"errors"
	"slices"
	"testing"
)

// A tree in a map: the block of a node names its children, that of the commit its root.
var byName = Typed[string]{
	Commit: func(block []byte) (any, string, error) { return "commit", string(block), nil },
	Node: func(block []byte) (any, error) {
		if string(block) == "broken" {
			return nil, errors.New("refused")
		}
		return "node of " + string(block), nil
	},
	Children: func(node any, child func(string) error) error {
		for _, name := range node.(string)[len("node of "):] {
			if err := child(string(name)); err != nil {
				return err
			}
		}
		return nil
	},
	Record: func(name string, _ []byte) (Block, error) {
		return Block{Decoded: true, Value: "record " + name}, nil
	},
}

func decodedByName(blocks map[string]string) (values []string, err error) {
	bytes := make(map[string][]byte)
	for name, block := range blocks {
		bytes[name] = []byte(block)
	}
	err = byName.Decode("root", bytes, func(block Block) { values = append(values, block.Value.(string)) })
	return values, err
}

func TestBlocksOfATreeAreDecodedByTheirTypesAndTheOthersAsRecords(t *testing.T) {
	values, err := decodedByName(map[string]string{"root": "a", "a": "bc", "b": "absent", "x": ""})
	want := []string{"commit", "node of bc", "node of absent", "record x"}
	if err != nil || !slices.Equal(values, want) {
		t.Fatal(values, err)
	}
	values, err = decodedByName(map[string]string{"other": ""})
	if err != nil || !slices.Equal(values, []string{"record other"}) {
		t.Fatal(values, err)
	}
}

func TestANodeThatFailsFailsItsFrame(t *testing.T) {
	if _, err := decodedByName(map[string]string{"root": "a", "a": "b", "b": "broken"}); err == nil {
		t.Fatal("accepted")
	}
}

func TestATypedNodeHasTheCountsOfItsMaps(t *testing.T) {
	var counts Counts
	counts.Node(1, false)
	counts.Entry([]byte("key"), true)
	counts.Commit("did:plc:a", "3l2y", make([]byte, 64), false)
	want := Counts{
		Maps: 3, MapEntries: 12, Arrays: 1, ArrayItems: 1, TextBytes: 6 + 24 + 13, ByteStringBytes: 67,
		Links: 3, Integers: 2, Nulls: 2,
	}
	if counts != want {
		t.Fatal(counts)
	}
}
