/** The thread that searches recordings: one after the other, line by line. */
import { parentPort, workerData } from 'node:worker_threads';
import { messageOf } from '../../src/kernel/fault.js';
import { readCast } from '../../src/recording/read-cast.js';
import { type TextLine, TextLines } from '../../src/recording/text-lines.js';
import { openRecording } from './open-recording.js';
import type { FromSearchWorker, SearchWorkerData, ToSearchWorker } from './search-messages.js';

/** Of a long line so much is told: some of it before the match. */
const LONGEST = 1_000;
const BEFORE = 200;

const { pattern, ignoreCase } = workerData as SearchWorkerData;
const expression = new RegExp(pattern, ignoreCase ? 'iu' : 'u');
const tell = (message: FromSearchWorker) => parentPort?.postMessage(message);

async function search({ path, length, most }: ToSearchWorker): Promise<void> {
  const { items } = await readCast(await openRecording(path, { length }));
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
    if (found >= most) return;
  }
  lines.end().forEach(look);
}

function cut(text: string, index: number): string {
  if (text.length <= LONGEST) return text;
  const from = Math.max(0, Math.min(index - BEFORE, text.length - LONGEST));
  // Half of a character at an end becomes a whole one.
  return Buffer.from(text.slice(from, from + LONGEST), 'utf8').toString('utf8');
}

parentPort?.on('message', (question: ToSearchWorker) => {
  search(question).then(
    () => tell({ is: 'done', problem: null }),
    (error: unknown) => tell({ is: 'done', problem: messageOf(error) }),
  );
});
