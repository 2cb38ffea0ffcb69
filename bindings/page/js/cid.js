// CIDs as text, from the bytes before a block in an archive.

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** Bytes of a CIDv1 under SHA-256. */
const CID_BYTES = 36;

/** The CID of the block whose data begins at `offset`. */
export function cidBefore(bytes, offset) {
  return offset < CID_BYTES ? "" : cidText(bytes.subarray(offset - CID_BYTES, offset));
}

function cidText(bytes) {
  let text = "b";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += BASE32[(value >>> bits) & 31];
    }
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? text + BASE32[(value << (5 - bits)) & 31] : text;
}
