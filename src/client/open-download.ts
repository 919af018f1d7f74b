/** A body that is taken as it comes, however long it is. */
import { Fault } from '../kernel/fault.js';
import { whileAlive } from './alive.js';
import { urlText } from './server-url.js';
import type { TransportAnswer } from './transport.js';

/** How long nothing may come, in milliseconds. */
const PATIENCE_MS = 60_000;

/** @param ask asks for it; the signal that it gets ends it */
export async function openDownload(
  ask: (ending: AbortSignal) => Promise<TransportAnswer>,
  url: URL,
  signal: AbortSignal | undefined,
): Promise<AsyncIterable<Uint8Array>> {
  const silence = new AbortController();
  const { body } = await ask(signal === undefined ? silence.signal : AbortSignal.any([signal, silence.signal]));
  return whileAlive(body, { patienceMs: PATIENCE_MS, onSilence: () => silence.abort(silent(url)) });
}

const silent = (url: URL): Fault =>
  new Fault('unreachable', `${urlText(url)} has fallen silent`, {
    hint: 'check the network in between',
    data: { url: urlText(url), broke: true },
  });
