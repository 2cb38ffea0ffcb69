package shell

import (
	"bytes"
	"errors"
)

// sigKey is the key `sig` and the head of 64 bytes. It ends in `@`, which no DID holds, so nothing
// before it in a commit can be mistaken for it.
var sigKey = []byte("\x63sig\x58\x40")

// cutSignature splits a canonical commit: the message is the same map without the entry `sig`.
func cutSignature(commit []byte) (message, signature []byte, err error) {
	before, rest, found := bytes.Cut(commit, sigKey)
	if !found || len(rest) < 64 {
		return nil, nil, errors.New("a commit holds a signature of 64 bytes")
	}
	message = append(bytes.Clone(before), rest[64:]...)
	message[0]--
	return message, rest[:64], nil
}
