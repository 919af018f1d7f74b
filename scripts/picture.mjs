/** `npm run picture`: records the quickstart in a terminal, and draws a part of it as docs/images/quickstart.svg. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawn } from 'node-pty';

const COLUMNS = 80;
/** Titles of the first step of the picture, and of the first step after it. */
const FIRST = 'A plan shows what would change';
const AFTER = 'Everything that happened';
const LIMIT_MS = 300_000;

const root = fileURLToPath(new URL('..', import.meta.url));
const orch = join(root, 'dist/orch/orch.js');
const temporary = mkdtempSync(join(tmpdir(), 'orch-picture-'));
try {
  const output = await record(['quickstart', '--dir', join(temporary, 'quickstart')]);
  const shown = part(output.replaceAll(temporary, '/tmp'));
  const cast = join(temporary, 'quickstart.cast');
  const head = { version: 2, width: COLUMNS, height: shown.split('\n').length, env: { TERM: 'xterm-256color' } };
  writeFileSync(cast, `${JSON.stringify(head)}\n${JSON.stringify([0, 'o', shown])}\n`);
  const picture = join(root, 'docs/images/quickstart.svg');
  mkdirSync(join(root, 'docs/images'), { recursive: true });
  rmSync(picture, { force: true });
  const drawn = spawnSync(process.execPath, [orch, 'term', 'transcript', cast, '--format', 'svg', '--out', picture], {
    stdio: 'inherit',
  });
  if (drawn.status === 0) chmodSync(picture, 0o644);
  process.exitCode = drawn.status ?? 1;
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

/** Runs a command of orch in a terminal. Returns what it wrote. */
function record(args) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, TERM: 'xterm-256color', FORCE_COLOR: '1' };
    const pty = spawn(process.execPath, [orch, ...args], { cols: COLUMNS, rows: 40, env, cwd: temporary });
    let text = '';
    const limit = setTimeout(() => pty.kill(), LIMIT_MS);
    pty.onData((data) => {
      text += data;
    });
    pty.onExit(({ exitCode }) => {
      clearTimeout(limit);
      if (exitCode === 0) resolve(text);
      else reject(new Error(`the quickstart ended with status ${exitCode}:\n${text}`));
    });
  });
}

/** Returns the lines from the first step of the picture to the first step after it. */
function part(output) {
  const lines = output.split('\r\n');
  const [from, to] = [FIRST, AFTER].map((title) => lines.findIndex((line) => line.includes(title)));
  if (from < 0 || to < from) throw new Error(`the quickstart has no steps "${FIRST}" and "${AFTER}"`);
  return lines.slice(from, to).join('\r\n').trimEnd();
}
