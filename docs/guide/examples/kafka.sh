#!/bin/sh
# Apache Kafka as `cargo xtask interop` installs it, on this machine alone:
#   kafka.sh broker PORT              serves until Ctrl-C; the controller has the next port
#   kafka.sh topic PORT NAME          creates a topic, as soon as the broker answers
#   kafka.sh read PORT NAME COUNT     prints the first records of a topic
set -eu

kafka() {
    exec java -Xmx320m -cp 'target/interop/kafka/lib/*' "$@"
}

case $1 in
broker)
    folder=target/example/kafka-$2 port=$2 controller=$(($2 + 1))
    rm -rf "$folder" && mkdir -p "$folder"
    cat > "$folder/broker.properties" <<END
process.roles=broker,controller
node.id=1
log.dirs=$folder/data
listeners=CLIENTS://127.0.0.1:$port,CONTROLLER://127.0.0.1:$controller
listener.security.protocol.map=CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=CLIENTS
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:$controller
offsets.topic.replication.factor=1
END
    (kafka kafka.tools.StorageTool format --cluster-id AAAAAAAAAAAAAAAAAAAAAQ --config "$folder/broker.properties")
    kafka kafka.Kafka "$folder/broker.properties"
    ;;
topic)
    kafka org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$2" --create --topic "$3" --partitions 4
    ;;
read)
    kafka org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "127.0.0.1:$2" --topic "$3" \
        --from-beginning --max-messages "$4" --property print.key=true
    ;;
esac
