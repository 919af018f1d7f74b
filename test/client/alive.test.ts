/** The watch for a silent end leaves nothing behind that keeps a program alive. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { whileAlive } from '../../src/client/streamed-body.js';

const built = new URL('../../dist/src/client/streamed-body.js', import.meta.url).href;

it('lets a program end as soon as the stream has', async () => {
  const program = [
    `import { whileAlive } from ${JSON.stringify(built)};`,
    'async function* chunks() { yield Buffer.of(1); yield Buffer.of(2); }',
    'const all = [];',
    `const onSilence = () => process.stdout.write('late');`,
    'for await (const chunk of whileAlive(chunks(), { maxSilenceMs: 3_600_000, onSilence })) all.push(chunk[0]);',
    'process.stdout.write(all.join());',
  ];
  // One that waited for its own timers would be killed.
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', program.join('\n')],
    { timeout: 60_000, killSignal: 'SIGKILL' },
  );
  expect(stdout).toBe('1,2');
});

it('leaves no timer behind, whether the stream ends or its reader leaves', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  async function* chunks() {
    yield Buffer.of(1);
    yield Buffer.of(2);
  }
  const before = timers();
  const options = { maxSilenceMs: 3_600_000, onSilence: () => undefined };
  for await (const chunk of whileAlive(chunks(), options)) expect(chunk).toHaveLength(1);
  for await (const chunk of whileAlive(chunks(), options)) {
    expect(chunk).toHaveLength(1);
    break;
  }
  expect(timers()).toBe(before);
});
