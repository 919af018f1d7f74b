/** Programs on real terminals. */
import { createHash, randomBytes } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { processEntry, signalSession } from '../../../src/agent/pty/process-table.js';
import { place } from '../../support/agent.js';
import { startPty } from '../../support/agent-pty.js';
import { until } from '../../support/orch.js';

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Text without line ends that a terminal shows as it is. */
const textOf = (size: number): Buffer => Buffer.from(randomBytes(size).toString('base64').slice(0, size));

describe('the output of a program', () => {
  it.each([1_000, 5_000, 20_000, 200_000, 1_000_000])('comes to its last byte: %i bytes', async (size) => {
    const file = join(place(), 'text');
    for (let round = 0; round < 8; round += 1) {
      const text = textOf(size);
      writeFileSync(file, text);
      const running = startPty(`exec cat '${file}'`);
      expect(await running.whenEnded).toEqual({ code: 0, signal: null, timedOut: false });
      expect(running.bytes().length).toBe(size);
      expect(sha(running.bytes())).toBe(sha(text));
    }
  });

  it('comes to its last byte when the reader starts long after the end of the program', async () => {
    const file = join(place(), 'text');
    const text = textOf(3_000);
    writeFileSync(file, text);
    const running = startPty(`cat '${file}'`, { paused: true });
    await until(() => processEntry(running.program.mark.pid) === null, 'the program has ended');
    // Longer than the pause after which an end without an answer is believed: nothing tells that it is not.
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(running.end).toBeNull();
    running.program.resume();
    await running.whenEnded;
    expect(running.bytes().equals(text)).toBe(true);
  });

  it('is complete although something in the background still writes', async () => {
    const running = startPty('trap "" HUP; (while sleep 0.01; do echo again; done) & echo last');
    await running.whenEnded;
    expect(running.text()).toContain('last\n');
    expect(running.text()).not.toContain('_E');
    signalSession(running.program.mark, 'SIGKILL');
  });

  it('ends although the terminal is stopped', async () => {
    const running = startPty('stty -ixany; echo ready; read line; echo stuck & exit 3');
    await running.shows('ready');
    running.program.write(Buffer.from('\x13'));
    await until(() => running.taken === 1, 'the stop is typed');
    running.program.write(Buffer.from('go\n'));
    expect(await running.whenEnded).toMatchObject({ code: 3 });
  });

  it('is not read while it is paused', async () => {
    const running = startPty('yes', { paused: true });
    running.program.resume();
    await until(() => running.bytes().length > 100_000, 'much has come');
    running.program.pause();
    // Bytes that were read before the pause arrive.
    await new Promise((resolve) => setTimeout(resolve, 100));
    const { length } = running.bytes();
    // Nothing tells that nothing is read.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(running.bytes().length).toBe(length);
    running.program.resume();
    await until(() => running.bytes().length > length + 100_000, 'it goes on');
    running.program.signal('INT');
    expect(await running.whenEnded).toMatchObject({ signal: 'INT' });
  });
});

describe('what is typed', () => {
  const lines = (size: number): Buffer => {
    const text = textOf(size);
    for (let at = 79; at < size; at += 80) text[at] = 0x0a;
    text[size - 1] = 0x0a;
    return text;
  };

  it.each(['canonical', 'raw'])('arrives byte by byte in %s mode: 200 KB at once', async (mode) => {
    const file = join(place(), 'typed');
    const text = lines(200_000);
    const setting = mode === 'raw' ? 'stty raw -echo' : 'stty -echo';
    const running = startPty(`${setting}; echo ready; head -c ${text.length} > '${file}'; echo done`);
    await running.shows('ready');
    running.program.write(text);
    await running.shows('done');
    await running.whenEnded;
    expect(running.taken).toBe(text.length);
    expect(sha(readFileSync(file))).toBe(sha(text));
  });

  it('is reported as taken only as far as the system has taken it', async () => {
    const running = startPty('stty raw -echo; echo ready; exec sleep 60');
    await running.shows('ready');
    running.program.write(Buffer.alloc(500_000, 'x'));
    await until(() => running.taken > 0, 'something is taken');
    // Nothing tells that no more is taken.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(running.taken).toBeLessThan(200_000);
    running.program.signal('KILL');
    await running.whenEnded;
  });

  it('reaches no other terminal when its own has ended', async () => {
    for (let round = 0; round < 10; round += 1) {
      const first = startPty('stty raw -echo; echo ready; exec sleep 60');
      await first.shows('ready');
      first.program.write(Buffer.alloc(300_000, 'x'));
      first.program.signal('KILL');
      await first.whenEnded;
      const second = startPty('stty -echo; echo ready; read line; echo "got <$line>"');
      await second.shows('ready');
      first.program.write(Buffer.from('stray\n'));
      first.program.resize(11, 11);
      second.program.write(Buffer.from('mine\n'));
      await second.whenEnded;
      expect(second.text()).toBe('ready\ngot <mine>\n');
    }
  });
});

describe('a program on a terminal', () => {
  it.each([0, 1, 2, 42, 126, 127, 128, 200, 255])('ends with its status %i', async (code) => {
    expect(await startPty(`exit ${code}`).whenEnded).toEqual({ code, signal: null, timedOut: false });
  });

  it.each(['HUP', 'INT', 'QUIT', 'KILL', 'TERM', 'SEGV'])('ends with the signal %s', async (signal) => {
    const running = startPty(`ulimit -c 0; kill -${signal} $$; sleep 10`);
    expect(await running.whenEnded).toEqual({ code: null, signal, timedOut: false });
  });

  it('ends with 127 when there is no such program', async () => {
    const running = startPty('', { launch: { file: '/no/such/shell', args: [] } });
    expect(await running.whenEnded).toMatchObject({ code: 127 });
  });

  it('starts at / when its directory is not there', async () => {
    const running = startPty('pwd', { launch: { directory: '/no/such/directory' } });
    await running.whenEnded;
    expect(running.text()).toBe('/\n');
  });

  it('has standard input, output and errors, and nothing else of anybody', async () => {
    const others = Array.from({ length: 5 }, () => startPty('echo up; read line'));
    await Promise.all(others.map((one) => one.shows('up')));
    const running = startPty('exec ls /proc/self/fd');
    await running.whenEnded;
    // The fourth is the directory that ls reads.
    expect(running.text().split(/\s+/).filter(Boolean)).toEqual(['0', '1', '2', '3']);
    const held = startPty('echo up; read line');
    await held.shows('up');
    const seen = startPty(`ls /proc/${held.program.mark.pid}/fd`);
    await seen.whenEnded;
    expect(
      seen
        .text()
        .split(/\s+/)
        .filter((word) => /^\d+$/.test(word) && Number(word) < 10),
    ).toEqual(['0', '1', '2']);
    for (const one of [...others, held]) one.program.write(Buffer.from('\n'));
    await Promise.all([...others, held].map((one) => one.whenEnded));
  });

  it('has the environment that it was given, its name, and a terminal of its own', async () => {
    const running = startPty('', {
      launch: { file: '/bin/bash', argv0: '-bash', args: ['-c', 'env; echo "name=$0"; tty; ps -o stat= -p $$'] },
    });
    await running.whenEnded;
    const lines = running.text().trim().split('\n');
    const names = lines.filter((line) => /^\w+=/.test(line)).map((line) => line.split('=')[0]);
    expect(new Set(names)).toEqual(new Set(['PATH', 'HOME', 'TERM', 'PWD', 'SHLVL', '_', 'name']));
    expect(lines).toContain('name=-bash');
    expect(lines.some((line) => line.startsWith('/dev/pts/'))).toBe(true);
  });

  it('has the size that it was given last, within what terminals may have', async () => {
    const running = startPty('stty size; trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done', {
      cols: 100,
      rows: 30,
    });
    await running.shows('30 100\nready');
    running.program.resize(132, 50);
    await running.shows('50 132');
    running.program.resize(65_535, 0);
    await running.shows('1 1000');
    running.program.signal('KILL');
    await running.whenEnded;
  });

  it('has its size changed twice by a burst of 5,000 changes: to the first at once, and to the last', async () => {
    const sizes: string[] = [];
    const running = startPty('trap "stty size" WINCH; echo ready; while :; do sleep 0.05; done', {
      onResize: (size) => sizes.push(size),
    });
    await running.shows('ready');
    for (let at = 0; at < 5_000; at += 1) running.program.resize(100 + (at % 100), 10);
    expect(sizes).toEqual(['100x10']);
    await running.shows('10 199');
    expect(sizes).toEqual(['100x10', '199x10']);
    running.program.signal('KILL');
    await running.whenEnded;
  });

  it('has the size that came before the input when it reads that', async () => {
    const sizes: string[] = [];
    const running = startPty('stty -echo; echo ready; while read line; do echo "$line: $(stty size)"; done', {
      onResize: (size) => sizes.push(size),
    });
    await running.shows('ready');
    for (let round = 1; round <= 20; round += 1) {
      running.program.resize(50, round);
      running.program.resize(60, round);
      running.program.write(Buffer.from(`line ${round}\n`));
      await running.shows(`line ${round}: ${round} 60\n`);
    }
    expect(sizes.at(-1)).toBe('60x20');
    running.program.signal('KILL');
    await running.whenEnded;
  });

  it('gets signals in the foreground only', async () => {
    const script =
      'set -m; sleep 61 & echo "back=$!"; bash -c "echo up; exec sleep 62"; echo "status=$?"; kill -0 $! && echo alive';
    const running = startPty('', { launch: { file: '/bin/bash', argv0: 'bash', args: ['-c', script] } });
    await running.shows('up');
    running.program.signal('TERM');
    await running.whenEnded;
    expect(running.text()).toMatch(/status=143[\s\S]*alive/);
  });

  it('leaves no descriptor open', async () => {
    await startPty('true').whenEnded;
    const before = openDescriptors();
    for (let round = 0; round < 20; round += 1) await startPty('echo hello').whenEnded;
    await until(() => openDescriptors() <= before, 'all are closed');
  });
});

const openDescriptors = (): number => readdirSync('/proc/self/fd').length;
