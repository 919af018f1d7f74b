/** Worker thread of `ParserPool`: parses one module text at a time. */
import { parentPort } from 'node:worker_threads';
import type { ParserTask } from './parser-pool.js';
import { locateIn, parseText, parseValues } from './text-parser.js';

// Answers as text: parsing JSON costs the main thread less than a structured clone of the objects.
parentPort?.on('message', (task: ParserTask) => {
  parentPort?.postMessage(JSON.stringify(answerTo(task)));
});

function answerTo({ what, content, files, pointers }: ParserTask): unknown {
  if (what === 'values') return parseValues(content);
  return pointers === null ? parseText(content, files) : locateIn(content, pointers);
}
