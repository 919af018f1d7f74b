/** Worker thread of `ParserPool`: parses one module text at a time. */
import { parentPort } from 'node:worker_threads';
import type { ParserTask } from './parser-pool.js';
import { locateIn, parseText } from './text-parser.js';

// Answers as text: parsing JSON costs the main thread less than a structured clone of the objects.
parentPort?.on('message', ({ content, pointers }: ParserTask) => {
  const answer = pointers === null ? parseText(content) : locateIn(content, pointers);
  parentPort?.postMessage(JSON.stringify(answer));
});
