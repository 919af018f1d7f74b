/** The versions of libraries whose private parts are used, against the installed ones. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { NODE_PTY_VERSION } from '../src/agent/pty/native-pty.js';
import { WS_VERSION } from '../src/terminal/direct-messages.js';
import { XTERM_VERSION } from '../src/terminal/xterm-core.js';

const root = fileURLToPath(new URL('..', import.meta.url));

describe('a library whose private parts are used', () => {
  it.each([
    ['@xterm/headless', XTERM_VERSION, 'src/terminal/xterm-core.ts'],
    ['node-pty', NODE_PTY_VERSION, 'src/agent/pty/native-pty.ts'],
    ['ws', WS_VERSION, 'src/terminal/direct-messages.ts'],
  ])('%s is %s, which %s was checked with', (name, version, adapter) => {
    const { version: installed } = JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8'));
    expect(installed, `check ${adapter} against the new version of ${name}, then name that version there`).toBe(
      version,
    );
  });

  it.each([
    ['@xterm/headless', /'_core'/, 'src/terminal/xterm-core.ts'],
    ['node-pty', /'node-pty\/lib/, 'src/agent/pty/native-pty.ts'],
    ['ws', /_socket|_receiver|_sender|listeners\('data'\)/, 'src/terminal/direct-messages.ts'],
  ])('%s is touched inside by one file alone', (_, pattern, adapter) => {
    const files = ['bin', 'src', 'daemon'].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
        .map((entry) => join(entry.parentPath, entry.name)),
    );
    const touching = files.filter((file) => pattern.test(readFileSync(file, 'utf8')));
    expect(touching).toEqual([join(root, adapter)]);
  });
});
