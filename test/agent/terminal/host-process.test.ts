/** The child process for sessions: one that cannot be started, and one that does not answer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { HostProcess } from '../../../src/agent/terminal/host-process.js';
import { silentLogger } from '../../../src/kernel/logger.js';
import { until } from '../../support/until.js';

let directory = '';
let losses = 0;
let messages: { readonly is: string }[] = [];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'orch-host-'));
  losses = 0;
  messages = [];
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Returns a process that runs this program. */
function hostOf(program: string, niceness?: number): HostProcess<object, { readonly is: string }> {
  const file = join(directory, 'program.mjs');
  writeFileSync(file, program);
  return new HostProcess({
    program: pathToFileURL(file),
    name: 'the process of the test',
    dataDir: directory,
    logger: silentLogger,
    ...(niceness !== undefined && { niceness }),
    onMessage: (message) => messages.push(message),
    onLost: () => {
      losses += 1;
    },
  });
}

const ECHO = `process.on('message', ({ do: what }) => {
  if (what === 'stop') process.exit(0);
  if (what === 'hang') for (;;);
  process.send({ is: what });
});`;

it('is lost when the system cannot start it, and is started again by the next session', async () => {
  const host = hostOf(ECHO);
  const { execPath } = process;
  process.execPath = join(directory, 'missing');
  try {
    host.send({ do: 'a' });
    await until(() => losses === 1, 'the loss is reported');
    expect(host.isRunning).toBe(false);
  } finally {
    process.execPath = execPath;
  }
  host.send({ do: 'b' });
  await until(() => messages.length === 1, 'it answers');
  expect(messages).toEqual([{ is: 'b' }]);
  await host.stop();
  expect(losses).toBe(1);
});

it('is lost at once when it is killed, and the next session gets another one', async () => {
  const host = hostOf(ECHO);
  host.send({ do: 'hang' });
  host.kill();
  expect([losses, host.isRunning]).toEqual([1, false]);
  host.send({ do: 'b' });
  await until(() => messages.length === 1, 'it answers');
  await host.stop();
  expect(losses).toBe(1);
});

it('leaves the processor to others where it is asked to', async () => {
  const own = getPriority();
  const host = hostOf(
    `${ECHO.replace('is: what', 'is: String(getPriority())')}\nimport { getPriority } from 'node:os';`,
    15,
  );
  await until(async () => {
    // The priority is set right after the start.
    host.send({ do: 'a' });
    return messages.at(-1)?.is === '15';
  }, 'it is nicer');
  expect(getPriority()).toBe(own);
  await host.stop();
});
