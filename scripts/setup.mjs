/** Installs what package-lock.json names, unless that has been done already, and builds. */
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

const root = fileURLToPath(new URL('..', import.meta.url));
const stamp = `${root}node_modules/.orch-installed`;

const wanted = createHash('sha256')
  .update(readFileSync(`${root}package-lock.json`))
  .update(`${process.version} ${process.platform} ${process.arch}`)
  .digest('hex');

function npm(...args) {
  const { status } = spawnSync('npm', args, {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  });
  if (status !== 0) {
    process.stderr.write(`\nsetup: "npm ${args.join(' ')}" failed; its output is above\n`);
    process.exit(status ?? 1);
  }
}

if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
  process.stderr.write('setup: installing dependencies (native modules are compiled, this takes a minute or two)\n');
  npm('ci', '--no-audit', '--no-fund');
  writeFileSync(stamp, wanted);
}
npm('run', '--silent', 'build');
