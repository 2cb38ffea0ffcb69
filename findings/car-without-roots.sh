#!/bin/sh
# Readers of CAR that refuse an archive without roots, the form of the answer of `com.atproto.sync.getBlocks` by the reference PDS:
# iroh-car, libipld, and go-car 0. go-car 2 and @ipld/car read it.
. "$(dirname "$0")/common.sh"
needs cargo cc go node npm python3
npm_packages @ipld/car@5.4.7
python_packages libipld==3.5.0
python3 - <<'PY'
import hashlib
block = bytes.fromhex("a1616101")
cid = bytes.fromhex("01711220") + hashlib.sha256(block).digest()
header = b"\xa2\x65roots\x80\x67version\x01"
archive = bytes([len(header)]) + header + bytes([len(cid + block)]) + cid + block
open("archive.car", "wb").write(archive)
PY
cargo_program "iroh-car@=0.5.1" "tokio@1 --features macros,rt" <<'RUST'
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let archive = std::fs::read("archive.car").unwrap();
    match iroh_car::CarReader::new(&archive[..]).await {
        Ok(_) => println!("read"),
        Err(error) => println!("{error}"),
    }
}
RUST
mv program iroh
go_program github.com/ipld/go-car@v0.6.2 github.com/ipld/go-car/v2@v2.17.0 <<'GO'
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/ipld/go-car"
	carv2 "github.com/ipld/go-car/v2"
)

func main() {
	archive, _ := os.ReadFile("archive.car")
	_, err := car.NewCarReader(bytes.NewReader(archive))
	fmt.Println("0.6.2:", err)
	blocks, err := carv2.NewBlockReader(bytes.NewReader(archive))
	if err == nil {
		_, err = blocks.Next()
	}
	fmt.Println("2.17.0:", err)
}
GO
cat > read.mjs <<'JS'
import { CarReader } from '@ipld/car';
import { readFileSync } from 'node:fs';
let blocks = 0;
for await (const block of (await CarReader.fromBytes(readFileSync('archive.car'))).blocks()) blocks += block.bytes.length > 0;
console.log(blocks);
JS
cat > read.py <<'PY'
import libipld
try:
    print(libipld.decode_car(open("archive.car", "rb").read()))
except ValueError as error:
    print(error)
PY
expect "iroh-car 0.5.1" "$(./iroh)" "Failed to parse CAR file: empty CAR file"
expect "libipld 3.5.0" "$(venv/bin/python read.py)" "Failed to read CAR header. Roots is empty. Must be at least one"
expect "go-car" "$(./program | paste -sd';' -)" "0.6.2: empty car, no roots;2.17.0: <nil>"
expect "@ipld/car 5.4.7, blocks" "$(node read.mjs)" 1
