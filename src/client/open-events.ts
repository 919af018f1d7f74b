/** One connection to a stream of events. */
import { Fault } from '../kernel/fault.js';
import { whileAlive } from './alive.js';
import { faultOfProblem } from './problem-fault.js';
import { mediaTypeOf, parseJson } from './read-answer.js';
import { readServerSentEvents, type ServerSentEvent } from './server-sent-events.js';
import { urlText } from './server-url.js';
import type { TransportAnswer } from './transport.js';
import { notOurs } from './unreachable.js';

export interface OpenEventsOptions {
  readonly url: URL;
  readonly signal: AbortSignal | undefined;
}

/** Four times as long as the server is silent. */
const PATIENCE_MS = 60_000;

/** @param connect asks for the stream; the signal that it gets ends it */
export async function openEvents(
  connect: (ending: AbortSignal) => Promise<TransportAnswer>,
  { url, signal }: OpenEventsOptions,
): Promise<AsyncIterable<{ readonly id: string; readonly data: unknown }>> {
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
    const chunks = whileAlive(body, { patienceMs: PATIENCE_MS, onSilence: () => ending.abort(silent(url)) });
    try {
      for await (const event of readServerSentEvents(chunks)) yield { id: event.id, data: dataOf(event, url) };
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
