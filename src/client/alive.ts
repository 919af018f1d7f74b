/** Notices when the other end has fallen silent. */

export interface AliveOptions {
  /** How long nothing may come, in milliseconds. */
  readonly patienceMs: number;
  /** Called once when nothing came for so long; has to make the chunks end. */
  readonly onSilence: () => void;
}

/** The same chunks. */
export async function* whileAlive(
  chunks: AsyncIterable<Uint8Array>,
  { patienceMs, onSilence }: AliveOptions,
): AsyncGenerator<Uint8Array> {
  let timer = setTimeout(onSilence, patienceMs);
  try {
    for await (const chunk of chunks) {
      clearTimeout(timer);
      yield chunk;
      timer = setTimeout(onSilence, patienceMs);
    }
  } finally {
    clearTimeout(timer);
  }
}
