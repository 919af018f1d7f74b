/** The thread of `ParserPool`: reads one text of a module after the other. */
import { parentPort } from 'node:worker_threads';
import type { ParserTask } from './parser-pool.js';
import { locateIn, parseText } from './text-parser.js';

// As text: reading JSON costs the other thread less than a copy of the objects.
parentPort?.on('message', ({ content, pointers }: ParserTask) => {
  const answer = pointers === null ? parseText(content) : locateIn(content, pointers);
  parentPort?.postMessage(JSON.stringify(answer));
});
