/** The script that makes a bare machine an agent: POSIX sh, for systems with systemd. */
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { AGENT_PORT } from '../../src/kernel/ports.js';
import { ENROLMENT_TOKEN_PATTERN } from '../../src/wire/enrolment-token.js';
import { spkiOf } from './own-pin.js';

/** A package that the script may download. */
export interface InstallPackage {
  readonly version: string;
  readonly cpu: 'x64' | 'arm64';
  readonly sha256: string;
}

export interface InstallScriptValues {
  /** Host and port under which the machine reached the orchestrator. */
  readonly place: string;
  /** Pin of the orchestrator's key, as curl writes it: `sha256//…`. */
  readonly pin: string;
  readonly token: string;
  readonly packages: readonly InstallPackage[];
  /** Key that signs the releases of the publisher; null when they are not signed. */
  readonly releaseKey: PublicKeyHex | null;
}

/**
 * Returns the host and port of a `Host` header; null for anything else. The result needs no quoting in a shell.
 */
export function placeOfHeader(header: string | undefined): string | null {
  const [, host, port] =
    /^([A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::(\d{1,5}))?$/.exec(header ?? '') ?? [];
  if (host === undefined) return null;
  // HTTP leaves the port out when it is 443.
  const number = port === undefined ? 443 : Number(port);
  return number >= 1 && number <= 65_535 ? `${host}:${number}` : null;
}

/**
 * Returns the script. Only its last line does something, and only when it is complete, so a download that is cut off does nothing.
 * Throws for a value that could be read as more than a word of the shell.
 */
export function installScript({ place, pin, token, packages, releaseKey }: InstallScriptValues): string {
  requireWord(place, /^[A-Za-z0-9.:[\]-]+$/);
  requireWord(pin, /^sha256\/\/[A-Za-z0-9+/]{43}=$/);
  requireWord(token, new RegExp(ENROLMENT_TOKEN_PATTERN));
  for (const { version, sha256 } of packages) {
    requireWord(version, /^[0-9A-Za-z.-]+$/);
    requireWord(sha256, /^[0-9a-f]{64}$/);
  }
  const known = packages.map(
    ({ cpu, version, sha256 }) => `      ${MACHINES[cpu]}) version='${version}' sum='${sha256}' ;;\n`,
  );
  const key = releaseKey === null ? '' : spkiOf(releaseKey).toString('base64');
  return SCRIPT.replace(/@([A-Z]+)@\n?/g, (_, name: string) => {
    const values: Readonly<Record<string, string>> = {
      PLACE: place,
      PIN: pin,
      TOKEN: token,
      KEY: key,
      PACKAGES: known.join(''),
      PORT: String(AGENT_PORT),
    };
    return values[name] ?? '';
  });
}

/** Names of the processors in the output of `uname -m`. */
const MACHINES = { x64: 'x86_64 | amd64', arm64: 'aarch64 | arm64' } as const;

function requireWord(value: string, pattern: RegExp): void {
  if (!pattern.test(value) || /['\\$`\s]/.test(value)) throw new Error('a value of the installer is no plain word');
}

const SCRIPT = `#!/bin/sh
# Installs orch on this machine, starts its agent as a service, and connects it to the orchestrator. Arguments go to "orch agent install".
fail() {
  printf 'orch: %s\\n' "$1" >&2
  exit 1
}

install_orch() {
  set -eu
  umask 022
  place='@PLACE@'
  pin='@PIN@'
  token='@TOKEN@'
  key='@KEY@'

  [ "$(uname -s)" = Linux ] || fail 'this installs agents on Linux; for other systems read docs/windows-and-macos.md'
  [ "$(id -u)" = 0 ] || fail 'only root can install the agent: paste the line again with "sudo sh" instead of "sh" at its end'
  [ -d /run/systemd/system ] || fail 'systemd does not run this machine: install orch by hand, and start it with: orch agent connect'

  if [ -x /usr/bin/orch ]; then
    # A package of the distribution is there: the package manager keeps it up to date.
    orch=/usr/bin/orch
  else
    version='' sum=''
    case $(uname -m) in
@PACKAGES@
      *) fail "the orchestrator has no package for this processor ($(uname -m)): its operator can make one with \\"npm run package -- --cpu CPU tar\\" and copy it to the directory packages of the orchestrator" ;;
    esac
    link=/usr/local/bin/orch
    if [ -e "$link" ] || [ -L "$link" ]; then
      [ "$(readlink "$link")" = /opt/orch/current/bin/orch ] || fail "another orch is installed in $link: remove it first, or run it: orch agent install $place --token -"
    fi
    release=releases/$version-$(printf %.12s "$sum")
    if is_intact "/opt/orch/$release"; then
      printf 'orch %s is installed already\\n' "$version"
    else
      fetch_release
    fi
    switch
    orch=$link
  fi
  printf '%s\\n' "$token" | "$orch" agent install "$place" --token - "$@"
}

# A release has exactly the files of its manifest, and no file that runs as its owner or group.
is_intact() {
  [ -f "$1/MANIFEST" ] && (
    cd "$1" && sha256sum --check --quiet --strict MANIFEST &&
      [ -z "$(find . ! -type d ! -type f)" ] && [ -z "$(find . -type f \\( -perm -4000 -o -perm -2000 \\))" ] &&
      [ "$(find . -type f ! -path ./MANIFEST ! -path ./MANIFEST.sig | wc -l)" -eq "$(wc -l <MANIFEST)" ]
  ) >/dev/null 2>&1
}

# Downloads the package, checks it, and puts its release in place. Leaves nothing behind when it fails.
fetch_release() {
  for program in tar gzip sha256sum mktemp find; do
    command -v "$program" >/dev/null || fail "$program is missing: install it with the package manager of this machine"
  done
  mkdir -p /opt/orch/releases
  work=$(mktemp -d /opt/orch/.install.XXXXXX)
  trap 'rm -rf "$work"; rmdir /opt/orch/releases /opt/orch 2>/dev/null || true' EXIT
  trap 'exit 130' HUP INT TERM
  printf 'Downloading orch %s from %s\\n' "$version" "$place"
  download "$work/orch.tar.gz" || fail "the package could not be downloaded from $place: paste the line again while its token is valid"
  found=$(sha256sum <"$work/orch.tar.gz")
  [ "\${found%% *}" = "$sum" ] || fail 'the downloaded package is not the one that the orchestrator announced: paste the line again'
  mkdir "$work/tree"
  tar -xzf "$work/orch.tar.gz" -C "$work/tree" --no-same-owner --no-same-permissions || fail 'the package cannot be unpacked in /opt/orch: see the message above'
  rm "$work/orch.tar.gz"
  mv "$work"/tree/*/lib/orch "$work/release"
  is_intact "$work/release" || fail 'the package is damaged: its files are not those of its manifest'
  check_signature "$work/release"
  "$work/release/bin/orch" --version >"$work/said" 2>&1 || fail "orch does not run on this machine: $(cat "$work/said")"
  # After a power cut the link must not name a release of empty files.
  sync
  rm -rf "/opt/orch/$release"
  mv "$work/release" "/opt/orch/$release"
  sync
}

# The token is given on standard input, because every user of this machine can read the arguments of programs.
download() {
  if command -v curl >/dev/null; then
    printf 'header = "Authorization: Bearer %s"\\n' "$token" |
      curl -fsSk --config - --pinnedpubkey "$pin" --connect-timeout 30 --retry 5 --speed-limit 1000 --speed-time 60 \\
        --output "$1" "https://$place/packages/$sum"
  elif command -v wget >/dev/null; then
    printf 'https://orch:%s@%s/packages/%s\\n' "$token" "$place" "$sum" |
      wget -q --auth-no-challenge --no-check-certificate --pinnedpubkey="$pin" --timeout=60 --tries=5 \\
        --retry-on-http-error=503 --output-document="$1" --input-file=-
  else
    fail 'neither curl nor wget is installed: install one with the package manager of this machine'
  fi
}

# Checks the publisher's signature, where this machine has an openssl that can.
check_signature() {
  [ -n "$key" ] || return 0
  case $(openssl version 2>/dev/null) in OpenSSL\\ [3-9]*) ;; *) return 0 ;; esac
  printf '%s\\n%s\\n%s\\n' '-----BEGIN PUBLIC KEY-----' "$key" '-----END PUBLIC KEY-----' >"$work/key.pem"
  openssl pkeyutl -verify -rawin -pubin -inkey "$work/key.pem" -in "$1/MANIFEST" -sigfile "$1/MANIFEST.sig" >/dev/null 2>&1 ||
    fail 'the package is not signed by the publisher of the orchestrator: tell its operator'
}

# Makes the release the current one in a single step.
switch() {
  if [ "$(readlink /opt/orch/current || true)" != "$release" ]; then
    ln -sfn "$release" /opt/orch/.current.new
    mv -fT /opt/orch/.current.new /opt/orch/current
  fi
  mkdir -p /usr/local/bin
  [ -L "$link" ] || ln -s /opt/orch/current/bin/orch "$link"
}

{ install_orch "$@"; }
`;
