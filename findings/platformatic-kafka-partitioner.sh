#!/bin/sh
# @platformatic/kafka takes the hash of a key as an unsigned number by default, where the clients in Java clear its sign: a key lies
# in another partition unless their number is a power of two. `compatibilityPartitioner` and kafkajs do as Java does.
. "$(dirname "$0")/common.sh"
needs node npm
npm_packages @platformatic/kafka@1.35.0 kafkajs@2.2.4
cat > partitions.mjs <<'JS'
import { compatibilityPartitioner, defaultPartitioner } from '@platformatic/kafka';
import kafkajs from 'kafkajs';
const count = Number(process.argv[2]);
const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({ partitionId, leader: 0 }));
const inKafkajs = kafkajs.Partitioners.DefaultPartitioner();
const keys = ['did:plc:ewvi7nxzyoun6zhxrhs64oiz', 'a', 'b'];
const list = (partition) => keys.map(partition).join(' ');
console.log([list((key) => defaultPartitioner({}, Buffer.from(key)) % count),
  list((key) => compatibilityPartitioner({}, Buffer.from(key)) % count),
  list((key) => inKafkajs({ topic: 'events', partitionMetadata, message: { key } }))].join('; '));
JS
expect "@platformatic/kafka 1.35.0, compatible, kafkajs 2.2.4; 16 partitions" "$(node partitions.mjs 16)" "15 12 4; 15 12 4; 15 12 4"
expect "@platformatic/kafka 1.35.0, compatible, kafkajs 2.2.4; 12 partitions" "$(node partitions.mjs 12)" "11 0 4; 3 4 8; 3 4 8"
