// The runner of atmos, a Go SDK for AT Protocol: its packages car, cbor, mst, repo, crypto, and the Verifier of sync.
//
// Its source is the module, or the checkout named by WIREPROOF_ATMOS.
package main

import (
	"runtime/debug"

	"github.com/jcalabro/atmos/crypto"

	"wireproof/go-shell"
)

func main() {
	shell.Run(shell.Runner{
		Engine:  "atmos car, cbor, mst, repo, crypto (P-256 of the standard library, secp256k1-voi) and sync",
		Version: version(),
		Tasks: map[string]map[string]shell.Variant{
			"decode": {
				// The reader of archives hashes every block; it has no option to turn that off.
				"verified":             decoder(decodeGenericBlocks).Variant(genericChecks),
				"verified/typed-nodes": decoder(decodeTypedBlocks).Variant(typedChecks),
			},
			"sigs":   verifier.Variants(sigsChecks, givenChecks),
			"mst":    trees.Variants(),
			"repo":   repositories.Variants(repoChecks),
			"commit": judge.Variants(commitChecks),
			"hostile": {
				"repo":   shell.HostileRepo(crypto.ParsePublicDIDKey, repoChecks, verifyDownloaded),
				"frames": judge.Hostile(commitChecks),
			},
		},
	})
}

// version is that of the module, or `checkout` for a build from a folder.
func version() string {
	build, _ := debug.ReadBuildInfo()
	for _, module := range build.Deps {
		if module.Path == "github.com/jcalabro/atmos" && module.Version != "(devel)" {
			return module.Version
		}
	}
	return "checkout"
}
