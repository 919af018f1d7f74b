#!/bin/sh
# A release that an upgrade has placed in /opt/orch comes before the one of the package.
release=/usr/lib/orch
[ ! -x /opt/orch/current/bin/node ] || release=$(readlink -f /opt/orch/current)
exec "$release/bin/node" "$release/dist/orch/orch.js" "$@"
