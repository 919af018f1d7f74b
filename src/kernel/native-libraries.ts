/** Tells how to get the native libraries, which npm compiles where it installs orch. */
import { VERSION } from './version.js';

const PACKAGES = 'Debian: apt-get install g++ make python3; Fedora: dnf install gcc-c++ make python3';
const COMMAND = `npm install --global --allow-scripts=better-sqlite3,node-pty ./orch-${VERSION}.tgz`;

/** The hint for a native library that is missing or does not load: the system's packages that compile it, and the command. */
export const COMPILE_HINT = `install a C++ compiler, make and Python (${PACKAGES}), then install orch again: ${COMMAND}, or npm ci in a checkout`;
