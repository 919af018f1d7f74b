#!/usr/bin/env bash
# Owns one run of booted hosts: claims a free number and prints it, waits until its standard input closes (however
# the test process ended), then removes every process, mount, link and cgroup of that run.
set -u
trap '' INT TERM HUP

readonly state=/run/orch-test-hosts
readonly cache=/var/cache/orch-test-hosts
readonly groups=(/sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified)

say() { printf 'test hosts: %s\n' "$1" >&2; }

# All claiming and forgetting happens while the cache directory is locked, so that two runs never see half a claim.
lock() {
  exec {held}<"$cache" && flock -w 60 "$held" && return 0
  say "cannot lock $cache"
  exit 1
}
unlock() { exec {held}<&-; }

group_directories() {
  local group
  for group in "${groups[@]}"; do
    [ -d "$group/orch-t$1" ] && printf '%s\n' "$group/orch-t$1"
  done
}

pids() { # pids NUMBER [FIND-TEST…]: processes in the run's cgroups
  local directory number=$1
  shift
  group_directories "$number" | while read -r directory; do
    find "$directory" "$@" -name cgroup.procs -exec cat {} + 2>/dev/null
  done | grep -vx 0 | sort -u
}

# The first process of a host takes all others with it, and systemd-nspawn then tidies up its own files; it is killed
# itself only when it has not ended after five seconds.
kill_processes() {
  local turn
  for turn in {1..120}; do
    [ -n "$(pids "$1")" ] || return 0
    if [ "$turn" -lt 100 ]; then
      pids "$1" '(' -path '*/payload/*' -o -path '*/entered/*' ')'
    else
      pids "$1"
    fi | xargs -r kill -KILL 2>/dev/null
    sleep 0.05
  done
  say "run $1: these processes do not end: $(pids "$1" | tr '\n' ' ')"
  return 1
}

remove_links() {
  local link failed=0
  for link in "/sys/class/net/orch-t$1" "/sys/class/net/orch-t$1-"*; do
    [ ! -e "$link" ] || ip link delete "${link##*/}" || failed=1
  done
  return "$failed"
}

unmount() {
  for _ in {1..40}; do
    mountpoint -q "$state/$1" || return 0
    umount -R "$state/$1" 2>/dev/null || sleep 0.05
  done
  say "run $1: $state/$1 stays in use and is only detached"
  umount -R -l "$state/$1"
  return 1
}

remove_groups() {
  local directory
  group_directories "$1" | while read -r directory; do
    find "$directory" -depth -type d -exec rmdir {} +
  done
}

clean() { # clean NUMBER: goes through all of it, fails when anything could not be removed
  local failed=0
  kill_processes "$1" || failed=1
  remove_links "$1" || failed=1
  unmount "$1" || failed=1
  remove_groups "$1" || failed=1
  find /run/systemd/nspawn/propagate -maxdepth 1 -name "orch-t$1-*" -exec rmdir {} + 2>/dev/null
  [ ! -d "$state/$1" ] || rmdir "$state/$1" || failed=1
  rm -f "$state/$1.lock"
  rmdir "$state" 2>/dev/null
  return "$failed"
}

sweep() { # runs whose guard no longer holds its lock were cut short together with their guard
  local lock number
  for lock in "$state"/*.lock; do
    [ -e "$lock" ] || continue
    number=$(basename "$lock" .lock)
    flock -n "$lock" true || continue
    say "removing what the interrupted run $number left behind"
    clean "$number"
  done
}

is_free() {
  [ ! -e "$state/$1.lock" ] && [ ! -e "/sys/class/net/orch-t$1" ] && [ -z "$(ip -4 route show root "10.77.$1.0/24")" ]
}

claim() { # sets number and alive; goes round, so that a number is not used again soon
  local last step
  sweep
  mkdir -p "$state"
  last=$(cat "$cache/last" 2>/dev/null || echo 0)
  for step in {0..253}; do
    number=$(((last + step) % 254 + 1))
    is_free "$number" && break
  done
  is_free "$number" || { say 'all of 10.77.1.0/24 to 10.77.254.0/24 are in use'; return 1; }
  printf '%s\n' "$number" >"$cache/last"
  exec {alive}>"$state/$number.lock"
  flock -n "$alive" && mkdir "$state/$number" &&
    mount -t tmpfs -o mode=0755 orch-test-hosts "$state/$number" &&
    ip link add "orch-t$number" type bridge &&
    ip address add "10.77.$number.1/24" brd + dev "orch-t$number" &&
    ip link set "orch-t$number" up
}

mkdir -p "$cache"
number='' alive='' failed=0
lock
claim || failed=1
unlock
if [ "$failed" = 0 ]; then
  printf '%s\n' "$number"
  while read -r _; do :; done
fi
lock
[ -z "$alive" ] || clean "$number" || failed=1
unlock
exit "$failed"
