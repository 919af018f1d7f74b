/**
 * Collects what a flood leaves. Node puts each piece that it reads into memory outside of V8's heap, which V8 counts as growth of
 * the old generation until its object is collected. Young objects are collected when they fill their own 16 MB, which takes a
 * thousand pieces and more; before that the growth has made V8 mark the whole heap, several times a second, on all processors.
 * Collecting the young ones sooner costs a millisecond or two. Serves the benchmark row "echo beside idle and flooding sessions".
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Read in between, in bytes: well below the growth that makes V8 mark a small heap. */
const ENOUGH = 4 * 1024 * 1024;

/** Collects everything, or only the young generation. */
type Collect = (options?: { readonly type: 'minor' }) => void;

export class YoungMemory {
  private bytes = 0;
  private collect: Collect | null = null;

  /** So much was read, and is done with soon. */
  read(bytes: number): void {
    this.bytes += bytes;
    if (this.bytes < ENOUGH) return;
    this.bytes = 0;
    this.collect ??= garbageCollector();
    setImmediate(this.collect, { type: 'minor' });
  }
}

/**
 * Returns V8's collection of garbage.
 * @see https://nodejs.org/api/v8.html#v8setflagsfromstringflags: what is given out is a function of new contexts
 */
export function garbageCollector(): Collect {
  setFlagsFromString('--expose-gc');
  try {
    return runInNewContext('gc') as Collect;
  } catch {
    // V8 does it by itself, in its own time.
    return () => {};
  } finally {
    setFlagsFromString('--no-expose-gc');
  }
}
