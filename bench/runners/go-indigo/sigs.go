package main

import (
	"bytes"

	"github.com/bluesky-social/indigo/atproto/atcrypto"
	"github.com/bluesky-social/indigo/atproto/repo"

	"wireproof/go-shell"
)

// verifier makes the calls of the relay and Tap: a generated decoder for the commit, and the commit's own method,
// which encodes it again without its signature.
var verifier = shell.Verifier[atcrypto.PublicKey]{
	ParseKey: func(curve shell.Curve, point []byte) (atcrypto.PublicKey, error) {
		if curve == shell.K256 {
			return atcrypto.ParsePublicBytesK256(point)
		}
		return atcrypto.ParsePublicBytesP256(point)
	},
	Verify: func(message, signature []byte, key atcrypto.PublicKey) bool {
		return key.HashAndVerify(message, signature) == nil
	},
	VerifyCommit: func(bytesOfCommit []byte, key atcrypto.PublicKey) (bool, error) {
		var commit repo.Commit
		if err := commit.UnmarshalCBOR(bytes.NewReader(bytesOfCommit)); err != nil {
			return false, err
		}
		return commit.VerifySignature(key) == nil, nil
	},
}

var sigsChecks = []string{"low-s"}
