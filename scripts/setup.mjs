/**
 * Installs what package-lock.json names, unless that has been done already, and builds. npm runs it as `prepare`: after it has
 * installed the libraries of a checkout, and before it links a checkout as a global command without its libraries.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `setup: this is Node.js ${process.versions.node} (${process.execPath}), and orch needs 20.19 or newer\n`,
  );
  process.exit(1);
}

const { env } = process;
// The `npm ci` below runs `prepare` as well.
if (env.ORCH_SETUP !== undefined) process.exit(0);

const root = fileURLToPath(new URL('..', import.meta.url));
const stamp = `${root}node_modules/.orch-installed`;

const wanted = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .update(`${process.version} ${process.platform} ${process.arch}`)
  .digest('hex');

function npm(...args) {
  // What the npm around this one was told about a global command is not meant for the libraries of this checkout.
  const { npm_config_global, npm_config_location, npm_config_allow_scripts, ...inherited } = env;
  const { status } = spawnSync('npm', args, {
    cwd: root,
    env: { ...inherited, ORCH_SETUP: '1' },
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status !== 0) {
    process.stderr.write(`\nsetup: "npm ${args.join(' ')}" failed; its output is above\n`);
    process.exit(status ?? 1);
  }
}

/** npm leaves out an optional library that cannot be compiled, and says nothing of it. Each Node.js needs one release of SQLite. */
function refuseMissingLibraries() {
  const isThere = (name) => existsSync(`${root}node_modules/${name}`);
  const missing = [['node-pty'], ['better-sqlite3', 'better-sqlite3-13'], ['pg']].filter(
    (names) => !names.some(isThere),
  );
  if (missing.length === 0) return;
  process.stderr.write(
    `\nsetup: ${missing.map(([name]) => name).join(' and ')} could not be installed. Native modules are compiled: that takes a C++ compiler,\n` +
      '  make and Python (Debian: apt-get install g++ make python3), and the headers of Node.js, from https://nodejs.org or from the\n' +
      '  directory that npm_config_nodedir names. Then run this again.\n',
  );
  process.exit(1);
}

const isInstalled = existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted;
const isBeingInstalled = env.npm_lifecycle_event === 'prepare' && env.npm_config_global !== 'true';
if (isBeingInstalled && !existsSync(`${root}node_modules/typescript`)) {
  process.stderr.write('setup: nothing is built, because the development dependencies were left out\n');
  process.exit(0);
}
if (!isInstalled && !isBeingInstalled) {
  process.stderr.write('setup: installing dependencies (native modules are compiled, this takes a minute or two)\n');
  npm('ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund');
  refuseMissingLibraries();
  writeFileSync(stamp, wanted);
}
npm('run', '--silent', 'build');
