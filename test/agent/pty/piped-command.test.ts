/** Commands on pipes, read at the pace of who wants their output. */
import { readdirSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { processEntry } from '../../../src/agent/pty/process-table.js';
import { keepBusy, launchOf, startPiped } from '../../support/agent-pty.js';
import { until } from '../../support/orch.js';

const descriptors = (): number => readdirSync('/proc/self/fd').length;

describe('a command on pipes', () => {
  it('is not read while it is paused, and loses nothing then', async () => {
    const running = await startPiped('head -c 3000000 /dev/zero | tr "\\0" x; echo end >&2', { paused: true });
    // Nothing tells that nothing is read.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(running.bytes().length).toBeLessThan(300_000);
    running.program.resume();
    expect(await running.whenEnded).toEqual({ code: 0, signal: null, timedOut: false });
    expect(running.bytes('out').length).toBe(3_000_000);
    expect(running.text('err')).toBe('end\n');
  });

  it('gives what it wrote although it ended before anybody read', async () => {
    const running = await startPiped('echo one; echo two >&2; exit 5', { paused: true });
    // Longer than the silence after which the end is believed: nothing tells that it is not.
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(running.end).toBeNull();
    running.program.resume();
    expect(await running.whenEnded).toMatchObject({ code: 5 });
    expect([running.text('out'), running.text('err')]).toEqual(['one\n', 'two\n']);
  });

  it('loses nothing when this process is too busy to read until the silence that ends it is over', async () => {
    const running = await startPiped('(sleep 0.5; echo last) & echo first; exit 5');
    await until(() => processEntry(running.program.mark.pid) === null, 'the program has ended');
    // The timer of the silence is due before the next chance to read.
    await keepBusy(1_500);
    expect(await running.whenEnded).toMatchObject({ code: 5 });
    expect(running.text('out')).toBe('first\nlast\n');
  });

  it('is over although something in the background writes for ever', async () => {
    const running = await startPiped('(while :; do echo again; sleep 0.05; done) & echo $!');
    expect(await running.whenEnded).toMatchObject({ code: 0 });
    const child = Number(
      running
        .text()
        .split('\n')
        .find((line) => /^\d+$/.test(line)),
    );
    process.kill(child, 'SIGKILL');
  });

  it('says so when it cannot be run after all', async () => {
    const running = await startPiped('', { launch: launchOf('', { file: '/etc/passwd', args: [] }) });
    expect(await running.whenEnded).toMatchObject({ code: 126 });
    expect(running.text('err')).toContain('/etc/passwd');
  });

  it('runs where there is no temporary directory', async () => {
    const { TMPDIR } = process.env;
    process.env.TMPDIR = '/none';
    onTestFinished(() => {
      if (TMPDIR === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = TMPDIR;
    });
    const running = await startPiped('echo one; echo two >/dev/stderr');
    expect(await running.whenEnded).toMatchObject({ code: 0 });
    expect([running.text('out'), running.text('err')]).toEqual(['one\n', 'two\n']);
  });

  it('leaves no descriptor open', async () => {
    await (await startPiped('true')).whenEnded;
    const before = descriptors();
    for (let round = 0; round < 10; round += 1) {
      const running = await startPiped('cat; echo err >&2', { stdin: true });
      running.program.write(Buffer.from('hello'));
      running.program.endInput();
      await running.whenEnded;
      expect(running.text('out')).toBe('hello');
    }
    await until(() => descriptors() <= before, 'all are closed');
  });
});
