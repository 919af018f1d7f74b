/** Reads a `text/event-stream` as the HTML standard says. */
import { StringDecoder } from 'node:string_decoder';

export interface ServerSentEvent {
  /** `message` unless the server says otherwise. */
  readonly type: string;
  /** Null when the server has only told an ID. */
  readonly data: string | null;
  /** The last ID that the stream has told, empty when there was none. */
  readonly id: string;
}

/** The events of a stream; one that is not whole when the stream ends is dropped, as are comments. */
export async function* readServerSentEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  let id = '';
  let told = '';
  let type = '';
  let data: string[] = [];
  for await (const line of readTextLines(chunks)) {
    if (line === '') {
      if (data.length > 0) yield { type: type || 'message', data: data.join('\n'), id };
      else if (id !== told) yield { type: 'message', data: null, id };
      told = id;
      type = '';
      data = [];
      continue;
    }
    const [field, value] = fieldOf(line);
    if (field === 'data') data.push(value);
    else if (field === 'event') type = value;
    else if (field === 'id' && !value.includes('\0')) id = value;
  }
}

/** Comments have no name. */
function fieldOf(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':');
  return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
}

/** Lines that end with CR, LF or both; what follows the last end is dropped. */
async function* readTextLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let rest = '';
  let isFirst = true;
  for await (const chunk of chunks) {
    let text = decoder.write(Buffer.from(chunk));
    if (isFirst && text !== '') {
      text = text.replace(/^\ufeff/, '');
      isFirst = false;
    }
    // A CR at the end may be the first half of a line end.
    const parts = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = parts.pop() ?? '';
    yield* parts;
  }
  if (rest.endsWith('\r')) yield rest.slice(0, -1);
}
