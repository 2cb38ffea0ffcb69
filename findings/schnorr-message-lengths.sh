#!/bin/sh
# Libraries that verify signatures of BIP-340 over 32 bytes alone: embit, tiny-secp256k1 and btcec. BIP-340 allows messages of
# any length since 2022. The signature here is over 17 bytes; @noble/curves verifies it.
. "$(dirname "$0")/common.sh"
needs node npm python3 go
npm_packages @noble/curves@2.4.0 tiny-secp256k1@2.2.4
python_packages embit==0.8.0
key=989c0b76cb563971fdc9bef31ec06c3560f3249d6ee9e5d83c57625596e05f6f
message=0505050505050505050505050505050505
signature=13593d49465f013eab78e31787e02c15f2953f4e6f3c84cc1b897e8fd9da2940b7abae3099f48d5bd9e7545cc4cd77d8487c0e0bedf845d3713241a8dfd9eff8
cat > noble.mjs <<'JS'
import { schnorr } from '@noble/curves/secp256k1.js';
const [key, message, signature] = process.argv.slice(2).map((hex) => Uint8Array.from(Buffer.from(hex, 'hex')));
console.log(schnorr.verify(signature, message, key));
JS
cat > tiny.mjs <<'JS'
import { verifySchnorr } from 'tiny-secp256k1';
const [key, message, signature] = process.argv.slice(2).map((hex) => Uint8Array.from(Buffer.from(hex, 'hex')));
try {
  console.log(verifySchnorr(message, key, signature));
} catch (error) {
  console.log(error.message);
}
JS
cat > verify.py <<'PY'
import sys
from embit import ec
key, message, signature = map(bytes.fromhex, sys.argv[1:])
try:
    print(ec.PublicKey.from_xonly(key).schnorr_verify(ec.SchnorrSig(signature), message))
except Exception as error:
    print(type(error).__name__)
PY
go_program github.com/btcsuite/btcd/btcec/v2@v2.3.6 <<'GO'
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/btcsuite/btcd/btcec/v2/schnorr"
)

func argument(at int) []byte {
	bytes, err := hex.DecodeString(os.Args[at])
	if err != nil {
		panic(err)
	}
	return bytes
}

func main() {
	key, err := schnorr.ParsePubKey(argument(1))
	if err != nil {
		panic(err)
	}
	signature, err := schnorr.ParseSignature(argument(3))
	if err != nil {
		panic(err)
	}
	fmt.Println(signature.Verify(argument(2), key))
}
GO
expect "@noble/curves 2.4.0" "$(node noble.mjs $key $message $signature)" true
expect "tiny-secp256k1 2.2.4" "$(node tiny.mjs $key $message $signature)" "Expected Hash"
expect "embit 0.8.0" "$(venv/bin/python verify.py $key $message $signature)" AssertionError
expect "btcec 2.3.6" "$(./program $key $message $signature)" false
