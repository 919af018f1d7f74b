/** Entry of the search thread, which searches recordings one by one, line by line. */
import { createHash, type Hash } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../../src/kernel/fault.js';
import { readCast } from '../../../src/terminal/recording/read-cast.js';
import { type TextLine, TextLines } from '../../../src/terminal/recording/text-lines.js';
import { openRecording } from './recording-files.js';
import type { FromSearchWorker, SearchWorkerData, ToSearchWorker } from './transcript-search.js';

/** Maximum reported characters of a line, and those before the match among them. */
const LONGEST = 1_000;
const BEFORE = 200;

const { pattern, ignoreCase } = workerData as SearchWorkerData;
const expression = new RegExp(pattern, ignoreCase ? 'iu' : 'u');
const post = (message: FromSearchWorker) => parentPort?.postMessage(message);

/** Searches a recording. Returns the hex SHA-256 of the plain file, or null when it was not read completely. */
async function search({ path, length, most }: ToSearchWorker): Promise<string | null> {
  const hash = createHash('sha256');
  const { items } = await readCast(hashed(await openRecording(path, { length }), hash));
  const lines = new TextLines();
  let found = 0;
  const look = (line: TextLine) => {
    const match = found < most ? expression.exec(line.text) : null;
    if (match === null) return;
    found += 1;
    post({ is: 'match', at: line.at, line: cut(line.text, match.index) });
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

/** Returns the hex SHA-256 of the plain file. */
async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of await openRecording(path)) hash.update(chunk);
  return hash.digest('hex');
}

/** Returns whether the file differs from the stored hash. Reads the rest of the file if needed. */
async function answer(question: ToSearchWorker): Promise<boolean> {
  const { path, sha256 } = question;
  const found = await search(question);
  return sha256 !== null && (found ?? (await hashOf(path))) !== sha256;
}

function cut(text: string, index: number): string {
  if (text.length <= LONGEST) return text;
  const from = Math.max(0, Math.min(index - BEFORE, text.length - LONGEST));
  // Replaces a lone surrogate at either end.
  return Buffer.from(text.slice(from, from + LONGEST), 'utf8').toString('utf8');
}

parentPort?.on('message', (question: ToSearchWorker) => {
  answer(question).then(
    (isAltered) => post({ is: 'done', problem: null, isAltered }),
    (error: unknown) => post({ is: 'done', problem: messageOf(error), isAltered: true }),
  );
});
