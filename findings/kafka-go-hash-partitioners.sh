#!/bin/sh
# sarama, by default, and `Hash` of kafka-go send a key to another partition than the clients in Java: they hash it with FNV-1a, not
# murmur2. `Murmur2Balancer` of kafka-go and franz-go do as Java does.
. "$(dirname "$0")/common.sh"
needs go
go_program github.com/IBM/sarama@v1.61.1 github.com/segmentio/kafka-go@v0.4.51 github.com/twmb/franz-go@v1.20.0 <<'GO'
package main

import (
	"fmt"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	partitions := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	for _, key := range []string{"did:plc:ewvi7nxzyoun6zhxrhs64oiz", "a", "b"} {
		inSarama, err := sarama.NewConfig().Producer.Partitioner("events").Partition(
			&sarama.ProducerMessage{Key: sarama.StringEncoder(key)}, int32(len(partitions)))
		if err != nil {
			panic(err)
		}
		message := kafka.Message{Key: []byte(key)}
		franz := kgo.StickyKeyPartitioner(nil).ForTopic("events").Partition(&kgo.Record{Key: []byte(key)}, len(partitions))
		fmt.Println(inSarama, (&kafka.Hash{}).Balance(message, partitions...),
			kafka.Murmur2Balancer{}.Balance(message, partitions...), franz)
	}
}
GO
expect "12 partitions, three keys: sarama 1.61.1, Hash, Murmur2Balancer, franz-go" "$(./program | paste -sd';' -)" \
    "5 5 3 3;0 0 4 4;3 3 8 8"
