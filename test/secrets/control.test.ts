/** The control socket of a running orchestrator. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { askOrchestrator } from '../../daemon/ask-orchestrator.js';
import { ControlServer } from '../../daemon/control-server.js';
import { Fault } from '../../src/kernel/fault.js';
import { recordingLogger, rejection, temporaryDirectory } from '../support/database.js';

async function serve(verb: () => Promise<Record<string, unknown>>, directory = temporaryDirectory()) {
  const logger = recordingLogger();
  const path = join(directory, 'control.sock');
  const server = new ControlServer({
    path,
    logger,
    verbs: { 'rotate-secrets-key': verb, backup: async ({ file }) => ({ file }), clock: async () => ({}) },
  });
  await server.start();
  onTestFinished(() => server.stop());
  return { directory, path, logger };
}

function say(path: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    let heard = '';
    socket.on('data', (chunk) => {
      heard += chunk;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(heard));
    socket.write(text);
  });
}

describe('the control socket', () => {
  it('is private and answers what it is asked', async () => {
    const { directory, path } = await serve(async () => ({ key_id: 'abc', secrets: 3 }));
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    expect(await askOrchestrator(directory, { verb: 'rotate-secrets-key' })).toEqual({ key_id: 'abc', secrets: 3 });
  });

  it('hands the verb what it needs', async () => {
    const { directory } = await serve(async () => ({}));
    const request = { verb: 'backup', file: '/mnt/a b.db', force: false } as const;
    expect(await askOrchestrator(directory, request)).toEqual({ file: '/mnt/a b.db' });
  });

  it('hands a fault on', async () => {
    const { directory } = await serve(async () => {
      throw new Fault('secrets_locked', '"T" cannot be decrypted', { hint: 'set it anew' });
    });
    const fault = await rejection(askOrchestrator(directory, { verb: 'rotate-secrets-key' }));
    expect(fault).toMatchObject({ code: 'secrets_locked', message: '"T" cannot be decrypted', hint: 'set it anew' });
  });

  it.each([
    ['an unknown verb', '{"verb":"open-the-door"}\n'],
    ['more than a verb', '{"verb":"rotate-secrets-key","x":1}\n'],
    ['a verb without what it needs', '{"verb":"backup"}\n'],
    ['no JSON', 'hello\n'],
    ['a line without an end', 'x'.repeat(70_000)],
  ])('refuses %s', async (_what, text) => {
    let asked = 0;
    const { path } = await serve(async () => {
      asked += 1;
      return {};
    });
    expect(JSON.parse(await say(path, text))).toMatchObject({ ok: false, error: { code: 'bad_request' } });
    expect(asked).toBe(0);
  });

  it('takes the place of what a dead process has left', async () => {
    const directory = temporaryDirectory();
    writeFileSync(join(directory, 'control.sock'), '');
    await serve(async () => ({}), directory);
    expect(await askOrchestrator(directory, { verb: 'rotate-secrets-key' })).toEqual({});
  });

  it('that cannot be made is in the log', async () => {
    const { logger } = await serve(async () => ({}), join(temporaryDirectory(), 'x'.repeat(120)));
    expect(logger.lines).toMatchObject([{ level: 'warn', message: 'the control socket cannot be made' }]);
  });

  it('that is not there says what to do', async () => {
    const directory = temporaryDirectory();
    expect(await rejection(askOrchestrator(directory, { verb: 'rotate-secrets-key' }))).toMatchObject({
      code: 'unreachable',
      message: `no orchestrator runs on ${directory}`,
      hint: 'start it with orch serve, or name its data directory with --data-dir',
    });
    expect(() => readFileSync(join(directory, 'control.sock'))).toThrow('ENOENT');
  });
});
