/** Reads NDJSON: one JSON value a line. */
import { StringDecoder } from 'node:string_decoder';
import { parseJson } from './read-answer.js';
import { notOurs } from './unreachable.js';

/** Each line as a value; empty lines are skipped. Throws Fault `unreachable` for a line that is no JSON. */
export async function* readLines(chunks: AsyncIterable<Uint8Array>, url: URL): AsyncGenerator<unknown> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  for await (const chunk of chunks) {
    const [first = '', ...others] = decoder.write(Buffer.from(chunk)).split('\n');
    rest += first;
    for (const next of others) {
      yield* valueIn(rest, url);
      rest = next;
    }
  }
  yield* valueIn(rest + decoder.end(), url);
}

function* valueIn(line: string, url: URL): Generator<unknown> {
  if (line.trim() === '') return;
  const value = parseJson(line);
  if (value === undefined) throw notOurs(url, 200, 'with a line that is not JSON');
  yield value;
}
