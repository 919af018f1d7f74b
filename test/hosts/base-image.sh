#!/usr/bin/env bash
# Builds the Debian that booted hosts start from, unless it exists: base-image.sh TARGET SUITE PACKAGE,PACKAGE…
# It is built beside TARGET and renamed, so TARGET is always whole; a lock lets one run build while others wait.
set -euo pipefail
target=$1 suite=$2 packages=$3
partial=$target.partial

mkdir -p "$(dirname "$target")"
exec 9>"$target.lock"
flock -w 600 9
[ ! -d "$target" ] || exit 0

remove_partial() { rm -rf --one-file-system "$partial"; }
remove_partial
trap remove_partial EXIT
# A mount namespace of its own: what an interrupted build has mounted in the tree vanishes with it.
unshare --mount --propagation private \
  mmdebstrap --quiet --variant=minbase --include="$packages" "$suite" "$partial" </dev/null

# Hosts have no way out: they know no repository until a test gives them one, and no timer takes apt's lock.
: >"$partial/etc/apt/sources.list"
: >"$partial/etc/resolv.conf"
: >"$partial/etc/machine-id"
find "$partial/var/lib/apt/lists" "$partial/var/cache/apt" -type f -delete
for timer in apt-daily apt-daily-upgrade dpkg-db-backup e2scrub_all; do
  ln -s /dev/null "$partial/etc/systemd/system/$timer.timer"
done
chmod 0755 "$partial"
mv "$partial" "$target"
