#!/bin/sh
# Runs the benchmark over a link of 1 Gbit/s between two network namespaces. As root, with iproute2:
# crates/coscan-transport/benches/wire/link.sh [options of the benchmark]
set -eu
asker=coscan-asker owner=coscan-owner
remove() {
    ip netns delete "$asker" 2>/dev/null || true
    ip netns delete "$owner" 2>/dev/null || true
}
trap remove EXIT
remove
for side in "$asker" "$owner"; do
    ip netns add "$side"
    ip -n "$side" link set lo up
done
ip link add wire netns "$asker" type veth peer name wire netns "$owner"
host=1
for side in "$asker" "$owner"; do
    ip -n "$side" address add "10.77.0.$host/24" dev wire
    ip -n "$side" link set wire up
    ip netns exec "$side" tc qdisc add dev wire root tbf rate 1gbit burst 256kb latency 20ms
    host=$((host + 1))
done
ip netns exec "$asker" cargo bench -q -p coscan-transport --bench wire -- \
    --hosts 10.77.0.1,10.77.0.2 --owner-in "ip netns exec $owner" "$@"
