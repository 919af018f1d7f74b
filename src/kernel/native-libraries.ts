/** Native libraries, which npm compiles where it installs orch: why one does not load, and how to get it. */
import { messageOf } from './fault.js';
import { VERSION } from './version.js';

const PACKAGES = 'Debian: apt-get install g++ make python3; Fedora: dnf install gcc-c++ make python3';
const COMMAND = `npm install --global --allow-scripts=better-sqlite3,node-pty ./orch-${VERSION}.tgz`;

/** The hint for a native library that is missing or does not load: the system's packages that compile it, and the command. */
export const COMPILE_HINT = `install a C++ compiler, make and Python (${PACKAGES}), then install orch again: ${COMMAND}, or npm ci in a checkout`;

/** Returns in one line why a native library does not load. */
export function loadFailure(error: unknown): string {
  const text = messageOf(error);
  if (/compiled against a different Node/.test(text)) return 'it was compiled for another Node.js than this one';
  return text.split('\n', 1)[0] ?? '';
}
