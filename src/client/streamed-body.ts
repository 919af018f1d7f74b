/** Bodies that are read as they arrive: server-sent events, NDJSON and downloads. A silent connection ends with a fault. */

import { StringDecoder } from 'node:string_decoder';
import { Fault } from '../kernel/fault.js';
import { faultOfProblem, mediaTypeOf, parseJson } from './http-messages.js';
import { urlText } from './server-url.js';
import { refuseTooLarge, type TransportAnswer } from './transport.js';
import { notOurs } from './unreachable.js';

interface OpenEventsOptions {
  readonly url: URL;
  readonly signal: AbortSignal | undefined;
}

/** Milliseconds without data after which a connection counts as lost: four times the server's keep-alive interval. */
const MAX_SILENCE_MS = 60_000;

/**
 * Opens one connection to a stream of events.
 * @param connect sends the request; its signal ends the stream
 */
export async function openEvents(
  connect: (ending: AbortSignal) => Promise<TransportAnswer>,
  { url, signal }: OpenEventsOptions,
): Promise<AsyncIterable<{ readonly id: string; readonly data: unknown; readonly gap: unknown }>> {
  const ending = new AbortController();
  const end = () => ending.abort(signal?.reason);
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted) end();
  try {
    const answer = await connect(ending.signal);
    if (mediaTypeOf(answer) !== 'text/event-stream')
      throw notOurs(url, answer.status, 'with something else than events');
    return read(answer);
  } catch (error) {
    signal?.removeEventListener('abort', end);
    throw error;
  }

  async function* read({ body }: TransportAnswer) {
    const chunks = whileAlive(body, { maxSilenceMs: MAX_SILENCE_MS, onSilence: () => ending.abort(silent(url)) });
    try {
      for await (const event of readServerSentEvents(chunks)) {
        const value = dataOf(event, url);
        const isGap = event.type === 'gap';
        yield { id: event.id, data: isGap ? null : value, gap: isGap ? value : null };
      }
    } finally {
      signal?.removeEventListener('abort', end);
    }
  }
}

/** Throws the fault of an `error` event. */
function dataOf({ type, data }: ServerSentEvent, url: URL): unknown {
  if (data === null) return null;
  const value = parseJson(data);
  if (value === undefined) throw notOurs(url, 200, 'with an event that is not JSON');
  if (type !== 'error') return value;
  throw faultOfProblem(value) ?? new Fault('internal', 'the orchestrator ended the stream without a reason');
}

const silent = (url: URL): Fault =>
  new Fault('unreachable', `${urlText(url)} has fallen silent`, {
    hint: 'check the network in between',
    data: { url: urlText(url), broke: true },
  });

/**
 * Opens a download of any length.
 * @param ask sends the request; its signal ends the download
 */
export async function openDownload(
  ask: (ending: AbortSignal) => Promise<TransportAnswer>,
  url: URL,
  signal: AbortSignal | undefined,
): Promise<AsyncIterable<Uint8Array>> {
  const silence = new AbortController();
  const { body } = await ask(signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]));
  return whileAlive(body, { maxSilenceMs: MAX_SILENCE_MS, onSilence: () => silence.abort(silent(url)) });
}

/** Yields each NDJSON line as a value and skips empty lines. Throws Fault `unreachable` for a line that is no JSON. */
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
    refuseTooLarge(rest.length);
  }
  yield* valueIn(rest + decoder.end(), url);
}

function* valueIn(line: string, url: URL): Generator<unknown> {
  if (line.trim() === '') return;
  const value = parseJson(line);
  if (value === undefined) throw notOurs(url, 200, 'with a line that is not JSON');
  yield value;
}

interface ServerSentEvent {
  /** Event name; `message` by default. */
  readonly type: string;
  /** Null for an event that carries only an ID. */
  readonly data: string | null;
  /** Last ID of the stream; empty before the first one. */
  readonly id: string;
}

/** Parses a `text/event-stream` by the HTML standard. Drops comments and an incomplete event at the end. */
export async function* readServerSentEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent> {
  let id = '';
  let lastId = '';
  let type = '';
  let data: string[] = [];
  for await (const line of readTextLines(chunks)) {
    if (line === '') {
      if (data.length > 0) yield { type: type || 'message', data: data.join('\n'), id };
      else if (id !== lastId) yield { type: 'message', data: null, id };
      lastId = id;
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

/** Splits a line into field and value. The field of a comment is empty. */
function fieldOf(line: string): readonly [name: string, value: string] {
  const colon = line.indexOf(':');
  return colon < 0 ? [line, ''] : [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
}

/** Yields lines that end with CR, LF or both. Drops text after the last line end. */
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
    // A CR at the end may be the first half of CR LF.
    const parts = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = parts.pop() ?? '';
    refuseTooLarge(rest.length);
    yield* parts;
  }
  if (rest.endsWith('\r')) yield rest.slice(0, -1);
}

interface AliveOptions {
  /** Maximum milliseconds between two chunks. */
  readonly maxSilenceMs: number;
  /** Called once when no chunk arrives in time. It must end `chunks`. */
  readonly onSilence: () => void;
}

/** Passes the chunks on and watches for silence. */
export async function* whileAlive(
  chunks: AsyncIterable<Uint8Array>,
  { maxSilenceMs, onSilence }: AliveOptions,
): AsyncGenerator<Uint8Array> {
  let timer = setTimeout(onSilence, maxSilenceMs);
  try {
    for await (const chunk of chunks) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(onSilence, maxSilenceMs);
    }
  } finally {
    clearTimeout(timer);
  }
}
