#!/bin/sh
# Gives a renewed certificate to the orchestrator and restarts it.
#
# certbot: copy it to /etc/letsencrypt/renewal-hooks/deploy/orch.sh, executable.
# lego:    lego … renew --renew-hook /usr/local/sbin/orch-certificate
#
# In /etc/orch/orchestrator.yaml:
#   tls_cert: /etc/orch/tls/api.crt
#   tls_key: /etc/orch/tls/api.key
set -eu

# lego names both files; certbot names the directory of the renewed certificate.
cert=${LEGO_CERT_PATH:-${RENEWED_LINEAGE:-}/fullchain.pem}
key=${LEGO_CERT_KEY_PATH:-${RENEWED_LINEAGE:-}/privkey.pem}
directory=${ORCH_TLS_DIR:-/etc/orch/tls}
group=${ORCH_TLS_GROUP:-orch}

# orch does not start with a key that belongs to another certificate, so look first.
if [ "$(openssl x509 -in "$cert" -noout -pubkey)" != "$(openssl pkey -in "$key" -pubout)" ]; then
  echo "orch: $key is not the key of $cert; nothing was changed" >&2
  exit 1
fi

# The service runs as the user orch, which may read these files and not change them.
install -d -m 750 -g "$group" "$directory"
install -m 640 -g "$group" "$cert" "$directory/api.crt.new"
install -m 640 -g "$group" "$key" "$directory/api.key.new"
mv "$directory/api.key.new" "$directory/api.key"
mv "$directory/api.crt.new" "$directory/api.crt"

# Changed files are taken over by themselves; the restart is for the first issue, after the settings were changed.
systemctl restart orch-serve
