/** `orch term transcript`, `replay` and `grep`. */
import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { TerminalDetail, TerminalMatch } from '../../src/contract/terminal.js';
import { expectGolden, NOW, type RunOptions, runOrch, transcript } from '../support/cli.js';
import { readings, web1 } from '../support/cli-world.js';
import { type FakeApi, loggedIn, startFakeApi } from '../support/fake-api.js';
import { encode, type Step } from '../support/recording-format.js';

const ID = '01JQ2Z6T0V5X8Y4M3N7P9R1S2T';
const say = (text: string): Step => ({ do: 'output', stream: 'out', bytes: Buffer.from(text) });
const HOSTILE = '\x1b]52;c;ZXZpbA==\x07\x1b]0;owned\x07\x1b[c\x1b[?1003h\x1b[6n';
const cast = encode([
  say('\x1b[32m$ make\x1b[0m\r\n'),
  say(`10%\r100%${HOSTILE}\r\n`),
  { do: 'output', stream: 'out', bytes: Buffer.from([0xff, 0x0a]) },
  say('\x1b[?1049h<b>vim</b>'),
]);
const raw = Buffer.concat([
  Buffer.from(`\x1b[32m$ make\x1b[0m\r\n10%\r100%${HOSTILE}\r\n`),
  Buffer.from([0xff, 0x0a]),
  Buffer.from('\x1b[?1049h<b>vim</b>'),
]);

const session: TerminalDetail = {
  session_id: ID,
  node_id: web1.node_id,
  node_name: 'web-01',
  status: 'closed',
  opened_at: NOW / 1000 - 300,
  closed_at: NOW / 1000 - 60,
  kind: 'shell',
  operator_id: 'ab'.padEnd(32, '0'),
  operator: 'ada',
  user: 'root',
  shell: '/bin/bash',
  command: null,
  reason: 'exited',
  exit_code: 0,
  exit_signal: null,
  recording: 'complete',
  output_bytes: raw.length,
  writer: null,
  viewers: [],
  cols: 80,
  rows: 24,
  transcript_path: `transcripts/2025-03/${ID}.cast`,
  transcript_sha256: createHash('sha256').update(cast).digest('hex'),
};

const match = (at: number, line: string, session_id = ID): TerminalMatch => ({
  ...{ session_id, at, line, operator: 'ada', opened_at: NOW / 1000 - 300 },
  ...{ node_id: web1.node_id, node_name: 'web-01' },
});

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi({ ...readings, getTerminal: { body: session }, getTranscript: { body: cast } });
});
afterAll(async () => {
  expect(api.violations).toEqual([]);
  await api.stop();
});

const orch = (argv: readonly string[], options: RunOptions = {}) =>
  runOrch(argv, { ...options, env: { ...loggedIn(api), ...options.env } });

function temporary(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'orch-cli-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return join(directory, name);
}

describe('a file of another format', () => {
  it.each([
    ['text', Buffer.from('{"version":3}\n'), 'this is not a recording: its first line is not an asciicast v2 header'],
    ['nothing', Buffer.alloc(0), 'this is not a recording: its first line is not an asciicast v2 header'],
    [
      'a long line',
      Buffer.alloc(3_000_000, 'x'),
      'this is not a recording: its first line is not an asciicast v2 header',
    ],
    [
      'other gzipped data',
      gzipSync('a tar file'),
      'this is not a recording: its first line is not an asciicast v2 header',
    ],
    ['something like gzip', Buffer.from('\x1f\x8bgarbage', 'latin1'), 'the compressed recording is damaged'],
    ['half a recording', gzipSync(cast).subarray(0, -9), 'the compressed recording is damaged'],
  ])('is refused by name: %s', async (_, bytes, reason) => {
    const file = temporary('other.cast');
    writeFileSync(file, bytes);
    for (const format of ['cast', 'raw', 'txt']) {
      const { status, stderr } = await orch(['term', 'transcript', file, '--format', format]);
      expect(status).not.toBe(0);
      expect(stderr).toContain(`${file} cannot be read: ${reason}`);
      expect(stderr).toContain('hint: use an asciicast version 2 file');
    }
  });
});

describe('term transcript', () => {
  it('gives the recording itself, byte for byte', async () => {
    const { status, stdout, stderr } = await orch(['term', 'transcript', ID]);
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: cast, stderr: '' });
  });

  it('gives every byte of the output to a file that only its owner reads', async () => {
    const out = temporary('session.raw');
    const argv = ['term', 'transcript', ID, '--format', 'raw', '--out', out];
    expect(await orch(argv)).toMatchObject({ status: 0, stdout: `Wrote ${out}.\n` });
    expect(readFileSync(out).equals(raw)).toBe(true);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    const again = await orch(argv);
    expect(again.status).toBe(64);
    expect(again.stderr).toMatch(/ exists already\n.*give the name of a file that does not exist yet/);
    expect(readFileSync(out).equals(raw)).toBe(true);
  });

  it.each(['cast', 'raw', 'txt', 'html'])('shows nothing hostile on a terminal as %s', async (format) => {
    const { stdout } = await orch(['term', 'transcript', ID, '--format', format], { columns: 80 });
    expect(stdout).toContain('make');
    for (const hostile of ['\x1b]', '\x1b[c', '\x1b[6n', '\x1b[?1003', '\x07']) expect(stdout).not.toContain(hostile);
  });

  it('shows text on a terminal', async () => {
    const { stdout } = await orch(['term', 'transcript', ID], { columns: 80 });
    expect(stdout.split('\x1b')[0]).toBe('$ make\n100%\n\ufffd\n<b>vim</b>\n');
  });

  it('takes out of files what is hostile when asked', async () => {
    const { stdout } = await orch(['term', 'transcript', ID, '--format', 'raw', '--harmless']);
    expect(stdout).toBe('\x1b[32m$ make\x1b[0m\r\n10%\r100%\r\n\ufffd\n\x1b[?1049h<b>vim</b>');
  });

  it('makes a page', async () => {
    const { stdout } = await orch(['term', 'transcript', ID, '--format', 'html']);
    expect(stdout).toContain('<span style="color:#00cd00">$ make</span>\n100%');
    expect(stdout).toContain('&lt;b&gt;vim&lt;/b&gt;');
  });

  it('says when it is not what was recorded', async () => {
    api.answer({ getTerminal: { body: { ...session, transcript_sha256: '0'.repeat(64) } } });
    onTestFinished(() => api.answer({ getTerminal: { body: session } }));
    const downloaded = await orch(['term', 'transcript', ID, '--format', 'txt']);
    expect(downloaded.stderr).toContain('this is not what was recorded');
    expect(downloaded.status).not.toBe(0);
    const replayed = await orch(['term', 'replay', ID, '--speed', '1000'], { columns: 80 });
    expect(replayed.stderr).toContain('this is not what was recorded');
    expect(replayed.status).not.toBe(0);
  });

  it('leaves no half of a file', async () => {
    api.answer({ getTranscript: { body: cast.slice(0, -5).replace('10%', '10%"') } });
    onTestFinished(() => api.answer({ getTranscript: { body: cast } }));
    const out = temporary('session.txt');
    const { status, stderr } = await orch(['term', 'transcript', ID, '--format', 'txt', '--out', out]);
    expect(status).toBe(1);
    expect(stderr).toContain('is not an event');
    expect(() => statSync(out)).toThrow();
  });

  it('tells why there is none', async () => {
    const problem = { problem: 'transcript_not_found', detail: `the session ${ID} has no recording` } as const;
    api.answer({ getTranscript: problem });
    onTestFinished(() => api.answer({ getTranscript: { body: cast } }));
    const argv = ['term', 'transcript', ID];
    expectGolden('term-transcript-none', transcript(argv, await orch(argv)));
  });
});

describe('term replay', () => {
  const restored = '\x1b7\x1b[r\x1b8\x1b[4l\x1b[?7h\x1b[?25h\x1b[0 q\x1b[m\x1b(B\x0f\r\n';

  it('shows what was shown, and leaves the terminal as it was', async () => {
    const { status, stdout } = await orch(['term', 'replay', ID], { columns: 80 });
    expect(status).toBe(0);
    expect(stdout).toBe(`\x1b[32m$ make\x1b[0m\r\n10%\r100%\r\n\ufffd\n\x1b[?1049h<b>vim</b>\x1b[?1049l${restored}`);
  });

  it('plays files, gzipped ones of other programs too, from any time', async () => {
    const file = temporary('other.cast.gz');
    const lines = ['{"version":2,"width":200,"height":50}', '[0.5,"o","one "]', '[7200,"o","two "]', '[9000,"i","x"]'];
    writeFileSync(file, gzipSync(`${lines.join('\n')}\n[9000.2,"o","three"]\n`));
    const argv = ['term', 'replay', file, '--at', '1:59:59', '--speed', '1000', '--idle-limit', '0.5'];
    const { status, stdout, stderr } = await orch(argv, { columns: 80 });
    expect({ status, stdout }).toEqual({ status: 0, stdout: `one two three${restored}` });
    expect(stderr).toContain('recorded at 200x50');
  });

  it('ends with Ctrl-C, and leaves the terminal as it was', async () => {
    const file = temporary('slow.cast');
    writeFileSync(
      file,
      '{"version":2,"width":80,"height":24}\n[0,"o","\\u001b[?25l\\u001b[?1049h"]\n[86400,"o","never"]\n',
    );
    const interrupts = new EventEmitter();
    setTimeout(() => interrupts.emit('SIGINT'), 300);
    const { status, stdout } = await orch(['term', 'replay', file], { columns: 80, interrupts });
    expect(status).toBe(130);
    expect(stdout).toBe(`\x1b[?25l\x1b[?1049h\x1b[?1049l${restored}`);
  });

  it.each([
    [['term', 'replay', ID], undefined, 'a replay needs a terminal'],
    [['term', 'replay', ID, '--speed', '0'], 80, '--speed takes a number above 0'],
    [['term', 'replay', ID, '--at', 'noon'], 80, '--at takes a time in the recording'],
    [['term', 'replay', './no-such.cast'], 80, './no-such.cast does not exist'],
  ])('refuses %j', async (argv, columns, message) => {
    const { status, stderr } = await orch(argv, columns === undefined ? {} : { columns });
    expect(status).toBe(64);
    expect(stderr).toContain(message);
  });
});

describe('term grep', () => {
  it('shows lines under their sessions', async () => {
    const matches = [
      match(12.34, 'rm: cannot remove /data: permission denied'),
      match(3_723, '\x1b]0;owned\x07denied'),
      match(1, 'denied again', '01JQ2Z6T0V5X8Y4M3N7P9R1S2V'),
    ];
    api.answer({ searchTerminals: { body: { matches, searched: 12, truncated: true, altered: [] } } });
    const argv = ['term', 'grep', 'denied', '-i', '--since', '2h ago', '--node', 'web-01', '--operator', 'ada'];
    expectGolden('term-grep', transcript(argv, await orch(argv)));
    expect(api.requests.at(-1)).toBe(
      `GET /terminal/search?pattern=denied&ignore_case=true&since=${NOW / 1000 - 7200}&node=${web1.node_id}&operator=ada`,
    );
  });

  it('refuses what is no regular expression', async () => {
    const ran = await orch(['term', 'grep', '(']);
    expect(ran).toMatchObject({ status: 64, stdout: '' });
    expect(ran.stderr).toContain('"(" is no regular expression');
  });

  it('names recordings that are not what was recorded, and fails', async () => {
    const altered = [ID, '01JQ2Z6T0V5X8Y4M3N7P9R1S2V'];
    const matches = [match(1, 'permission denied')];
    api.answer({ searchTerminals: { body: { matches, searched: 12, truncated: false, altered } } });
    const argv = ['term', 'grep', 'denied'];
    expectGolden('term-grep-altered', transcript(argv, await orch(argv)));
  });

  it('says when there is nothing', async () => {
    api.answer({ searchTerminals: { body: { matches: [], searched: 3, truncated: false, altered: [] } } });
    const argv = ['term', 'grep', 'nothing'];
    expectGolden('term-grep-none', transcript(argv, await orch(argv)));
  });
});
