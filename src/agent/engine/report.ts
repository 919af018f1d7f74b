/** Results as messages of bounded size. */
import type { RunItem } from '../../wire/messages.js';
import type { EngineReport } from './run-engine.js';

/** Characters of JSON in one message, well below the largest frame; one larger result goes alone. */
const MESSAGE_SIZE = 256 * 1024;
const MESSAGE_ITEMS = 1_000;

/** @param from position of the first item in the sequence of results */
export function resultMessages(runId: string, from: number, items: readonly RunItem[]): readonly EngineReport[] {
  const messages: EngineReport[] = [];
  let batch: RunItem[] = [];
  let size = 0;
  let start = from;
  const flush = () => {
    if (batch.length > 0) messages.push({ type: 'run_results', run_id: runId, from: start, items: batch });
    start += batch.length;
    batch = [];
    size = 0;
  };
  for (const item of items) {
    const length = JSON.stringify(item).length;
    if (size + length > MESSAGE_SIZE || batch.length >= MESSAGE_ITEMS) flush();
    batch.push(item);
    size += length;
  }
  flush();
  return messages;
}
