#!/bin/sh
# A Kafka broker takes records with `acks=all` for a topic with `min.insync.replicas=2` and one replica: what counts is the smaller of
# the setting and the number of replicas. The setting reads as if such records were refused.
. "$(dirname "$0")/common.sh"
needs java mvn python3
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>findings</groupId>
  <artifactId>kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>4.1.1</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>4.1.1</version></dependency>
  </dependencies>
</project>
XML
mvn --batch-mode --quiet org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory=lib >&2
tool() { java -Xmx256m -cp "lib/*" "$@" 2> tool.log || { cat tool.log >&2; exit 1; }; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
broker=$(free_port)
controller=$(free_port)
cat > broker.properties <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:$controller
listeners=PLAINTEXT://127.0.0.1:$broker,CONTROLLER://127.0.0.1:$controller
controller.listener.names=CONTROLLER
log.dirs=$work/log
offsets.topic.replication.factor=1
PROPERTIES
tool kafka.tools.StorageTool format --standalone --cluster-id 5L6g3nShT-eMCtK--X86sw --config broker.properties > format.log
java -Xmx512m -cp "lib/*" kafka.Kafka broker.properties > broker.log 2>&1 &
running=$!
trap 'kill "$running"; wait "$running" || true; rm -rf "$work"' EXIT
address=127.0.0.1:$broker
tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$address" --create --topic events --replication-factor 1 \
    --config min.insync.replicas=2 > create.log
echo stored | tool org.apache.kafka.tools.ConsoleProducer --bootstrap-server "$address" --topic events --producer-property acks=all
said=$(tool org.apache.kafka.tools.TopicCommand --bootstrap-server "$address" --describe --topic events)
read=$(tool org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$address" --topic events --from-beginning --max-messages 1)
expect "Kafka 4.1.1, one replica, acks=all: min.insync.replicas, what is read back" \
    "$(echo "$said" | grep -o 'min.insync.replicas=[0-9]*' | head -1), $read" "min.insync.replicas=2, stored"
