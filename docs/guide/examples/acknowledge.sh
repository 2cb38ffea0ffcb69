#!/bin/sh
# Reads lines of `wireproof follow --ack-stdin`, prints each to standard error, and acknowledges it: its id to standard output.
while IFS= read -r line; do
    printf '%.120s\n' "$line" >&2
    id=${line#*'"id":"'}
    # Store what you need first: an acknowledged event is not printed again.
    printf '%s\n' "${id%%'"'*}"
done
