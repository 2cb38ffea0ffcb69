#!/bin/sh
# confluent-kafka sends a key to another partition than the clients in Java by default (`consistent_random`, CRC-32). With
# `partitioner: murmur2_random` it does as Java does. Run on the mock broker of the package.
. "$(dirname "$0")/common.sh"
needs python3
python_packages confluent-kafka==2.16.1
cat > produce.py <<'PY'
import sys
from confluent_kafka import Producer
partitions = {}
options = dict(argument.split("=") for argument in sys.argv[1:])
producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "allow.auto.create.topics": True, **options})
keys = ["did:plc:ewvi7nxzyoun6zhxrhs64oiz", "a", "b"]
for key in keys:
    producer.produce("events", key=key, on_delivery=lambda _, message: partitions.update({message.key(): message.partition()}))
producer.flush(60)
print(*(partitions[key.encode()] for key in keys))
PY
expect "confluent-kafka 2.16.1, 4 partitions, as Java" "$(venv/bin/python produce.py partitioner=murmur2_random 2> log)" "3 0 0"
expect "confluent-kafka 2.16.1, 4 partitions, by default" "$(venv/bin/python produce.py 2> log)" "0 3 1"
