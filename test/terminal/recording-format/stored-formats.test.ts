/** Recordings of earlier releases, plain and compressed, are read to their last byte. */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compressRecording, openRecording } from '../../../daemon/terminal/recordings/recording-files.js';
import { CastEncoder } from '../../../src/terminal/recording/cast-encoder.js';
import { type CastSession, headLine } from '../../../src/terminal/recording/cast-format.js';
import { readCast } from '../../../src/terminal/recording/read-cast.js';
import { scanCast } from '../../../src/terminal/recording/scan-cast.js';
import { all } from '../../support/recording-format.js';
import { type Complete, describeReleased } from '../../support/released.js';

const session: Complete<CastSession> = {
  session: '01JQ2Z6T0V5X8Y4M3N7P9R1S2T',
  node: '3f'.repeat(16),
  node_name: 'web-01',
  operator: 'ada',
  shell: '/bin/bash',
  command: ['echo', 'here'],
};

function write(directory: string): void {
  const openedAt = Date.parse('2026-03-01T12:00:00Z');
  const head = Buffer.from(headLine({ cols: 80, rows: 24, openedAt, term: 'xterm', session }));
  const encoder = CastEncoder.begin(head);
  const file = [
    head,
    ...encoder.checkpoint(0),
    ...encoder.output(0.5, 'out', Buffer.from('naïve \x1b[31m\u2028\r\n')),
    ...encoder.output(1, 'out', Buffer.from([0xff, 0xfe, 0xe2, 0x82])),
    ...encoder.output(1.25, 'err', Buffer.from('to stderr\n')),
    ...encoder.omit(1.5, 'err', Buffer.from([0, 1, 2])),
    ...encoder.resize(2, 100, 30),
    ...encoder.mark(2.5, 'interrupted'),
    ...encoder.exit(3, 7),
    ...encoder.flush(3),
    ...encoder.checkpoint(3),
  ];
  writeFileSync(join(directory, 'session.cast'), Buffer.concat(file));
}

async function read(directory: string): Promise<unknown> {
  const path = join(directory, 'session.cast');
  const { head, items } = await readCast(await openRecording(path));
  const found = await all(items);
  const { hash: _, omitted: __, ...scanned } = await scanCast(await openRecording(path));
  copyFileSync(path, join(directory, 'again.cast'));
  await compressRecording(path, new AbortController().signal);
  const compressed = await all((await readCast(await openRecording(path))).items);
  return { head, items: found, scanned, isSameCompressed: JSON.stringify(compressed) === JSON.stringify(found) };
}

describeReleased(import.meta.url, [
  { name: 'recording', revision: 2, version: 'version in src/terminal/recording/cast-format.ts', write, read },
]);
