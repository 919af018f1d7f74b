/** The checks that the bundle holds compiled, against those that they stand for. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
// @ts-expect-error It is a script.
import { evaluatedModules } from '../scripts/bundle/evaluated-modules.mjs';
import * as calls from '../src/client/calls.js';
import { exits, serverNotes, snapshotHeads } from '../src/client/terminal/server-checks.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'orch-bundled-'));
let bundledCalls: typeof calls;
const checks = { exits, serverNotes, snapshotHeads };
let bundledChecks: typeof checks;

beforeAll(async () => {
  await build({
    absWorkingDir: root,
    entryPoints: { calls: 'dist/src/client/calls.js', checks: 'dist/src/client/terminal/server-checks.js' },
    outdir: directory,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    plugins: [evaluatedModules(/\.js$/)],
    logLevel: 'silent',
  });
  bundledCalls = await import(pathToFileURL(join(directory, 'calls.mjs')).href);
  bundledChecks = { ...(await import(pathToFileURL(join(directory, 'checks.mjs')).href)) };
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const welcome = {
  kind: 'welcome',
  session_id: 'S',
  node_name: 'web-01',
  mode: 'write',
  taken: 0,
  secret: 's',
  recorded: true,
  writer: null,
  viewers: ['ada'],
};
const exit = { code: 3, signal: null, reason: 'exited', final_offset: 12 };
const LONG = 'ü'.repeat(128);

/** For each check what is right, and ways to spoil it. */
const SAMPLES: Readonly<Record<keyof typeof checks, readonly unknown[]>> = {
  serverNotes: [
    welcome,
    { ...welcome, writer: LONG },
    { ...welcome, writer: `${LONG}x` },
    { ...welcome, mode: 'both' },
    { ...welcome, more: 1 },
    { ...welcome, viewers: [1] },
    { kind: 'agent_link', connected: false },
    { kind: 'latency', agent_ms: null },
    { kind: 'latency', agent_ms: -1 },
    { kind: 'later' },
  ],
  exits: [
    exit,
    { ...exit, code: 256 },
    { ...exit, code: null, signal: 'TERM' },
    { ...exit, signal: 'not a signal' },
    { ...exit, reason: 'bored' },
    { ...exit, final_offset: 1.5 },
  ],
  snapshotHeads: [
    { cols: 80, rows: 24, offset: 0 },
    { cols: 80, rows: -1, offset: 0 },
    { cols: 80, rows: 24 },
  ],
};

describe('what the bundle holds instead of schemas', () => {
  it.each(Object.entries(SAMPLES))('%s judges as the schema does', (name, samples) => {
    const key = name as keyof typeof checks;
    const verdicts = samples.map((sample) => checks[key].check(sample));
    expect(samples.map((sample) => bundledChecks[key].check(sample))).toEqual(verdicts);
    expect(new Set(verdicts)).toEqual(new Set([true, false]));
    for (const other of [null, undefined, 1, 'text', [], {}]) expect(bundledChecks[key].check(other)).toBe(false);
  });

  it('has the routes as the contract names them', () => {
    expect({ ...bundledCalls }).toEqual({ ...calls });
  });

  it('refuses a module that is more than values', async () => {
    const made = build({
      absWorkingDir: root,
      entryPoints: ['dist/src/client/server-url.js'],
      write: false,
      bundle: true,
      platform: 'node',
      plugins: [evaluatedModules(/server-url\.js$/)],
      logLevel: 'silent',
    });
    await expect(made).rejects.toThrow(/neither plain data nor a validator/);
  });
});
