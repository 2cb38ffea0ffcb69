package main

import (
	"github.com/jcalabro/atmos/crypto"
	"github.com/jcalabro/atmos/repo"

	"wireproof/go-shell"
)

// verifier uses the commit's own method, which encodes it again without its signature.
var verifier = shell.Verifier[crypto.PublicKey]{
	ParseKey: func(curve shell.Curve, point []byte) (crypto.PublicKey, error) {
		if curve == shell.K256 {
			return crypto.ParsePublicBytesK256(point)
		}
		return crypto.ParsePublicBytesP256(point)
	},
	Verify: func(message, signature []byte, key crypto.PublicKey) bool {
		return key.HashAndVerify(message, signature) == nil
	},
	VerifyCommit: func(bytes []byte, key crypto.PublicKey) (bool, error) {
		commit, err := repo.DecodeCommitCBOR(bytes)
		if err != nil {
			return false, err
		}
		return commit.VerifySignature(key) == nil, nil
	},
}

var (
	sigsChecks  = []string{"low-s", "strict-cbor"}
	givenChecks = []string{"low-s"}
)
