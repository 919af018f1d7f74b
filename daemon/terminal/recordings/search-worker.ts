/** The thread that searches recordings: one after the other, line by line. */
import { createHash, type Hash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../../src/kernel/fault.js';
import { readCast } from '../../../src/terminal/recording/read-cast.js';
import { type TextLine, TextLines } from '../../../src/terminal/recording/text-lines.js';
import { openRecording } from './open-recording.js';
import type { FromSearchWorker, SearchWorkerData, ToSearchWorker } from './search-messages.js';

/** Of a long line so much is told: some of it before the match. */
const LONGEST = 1_000;
const BEFORE = 200;

const { pattern, ignoreCase } = workerData as SearchWorkerData;
const expression = new RegExp(pattern, ignoreCase ? 'iu' : 'u');
const tell = (message: FromSearchWorker) => parentPort?.postMessage(message);

/** Gives the SHA-256 of the plain file; null when not all of it was read. */
async function search({ path, length, most }: ToSearchWorker): Promise<string | null> {
  const hash = createHash('sha256');
  const { items } = await readCast(hashed(await openRecording(path, { length }), hash));
  const lines = new TextLines();
  let found = 0;
  const look = (line: TextLine) => {
    const match = found < most ? expression.exec(line.text) : null;
    if (match === null) return;
    found += 1;
    tell({ is: 'match', at: line.at, line: cut(line.text, match.index) });
  };
  for await (const item of items) {
    if (item.kind === 'output') lines.write(item.at, item.text).forEach(look);
    if (found >= most) return null;
  }
  lines.end().forEach(look);
  return hash.digest('hex');
}

async function* hashed(chunks: AsyncIterable<Uint8Array>, hash: Hash): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    hash.update(chunk);
    yield chunk;
  }
}

/** Of the plain file. */
async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of await openRecording(path)) hash.update(chunk);
  return hash.digest('hex');
}

/** Whether it is not what the store says. What the search has not read to its end is read for that. */
async function answer(question: ToSearchWorker): Promise<boolean> {
  const { path, sha256 } = question;
  const found = await search(question);
  return sha256 !== null && (found ?? (await hashOf(path))) !== sha256;
}

function cut(text: string, index: number): string {
  if (text.length <= LONGEST) return text;
  const from = Math.max(0, Math.min(index - BEFORE, text.length - LONGEST));
  // Half of a character at an end becomes a whole one.
  return Buffer.from(text.slice(from, from + LONGEST), 'utf8').toString('utf8');
}

parentPort?.on('message', (question: ToSearchWorker) => {
  answer(question).then(
    (isAltered) => tell({ is: 'done', problem: null, isAltered }),
    (error: unknown) => tell({ is: 'done', problem: messageOf(error), isAltered: true }),
  );
});
