/** The engine's end of downloads: it asks the thread of the link for files, and takes them from the data directory. */
import { Fault, isFaultCode } from '../../kernel/fault.js';
import type { SourceFile } from '../../resources/host.js';
import type { SourceFiles } from '../host/source-files.js';
import { clearContent, contentPaths } from './content-directory.js';

/** Answer of the other thread: null once the file is there, else why it does not come. */
export type FetchedContent = { readonly code: string; readonly message: string } | null;

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/** Serves one run at a time, which asks for one file at a time. */
export class ContentRequests implements SourceFiles {
  private readonly dataDir: string;
  private readonly ask: (file: SourceFile) => void;
  private readonly waiting = new Map<string, Waiting>();

  /** @param ask sends a request, to be answered with `answer` */
  constructor(dataDir: string, ask: (file: SourceFile) => void) {
    this.dataDir = dataDir;
    this.ask = ask;
  }

  async bring(file: SourceFile, signal: AbortSignal | undefined): Promise<string> {
    const { sha256 } = file;
    signal?.throwIfAborted();
    const abort = () => this.waiting.get(sha256)?.reject(signal?.reason);
    signal?.addEventListener('abort', abort, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        this.waiting.set(sha256, { resolve, reject });
        this.ask(file);
      });
      return contentPaths(this.dataDir, sha256).complete;
    } finally {
      signal?.removeEventListener('abort', abort);
      this.waiting.delete(sha256);
    }
  }

  /** Passes on the answer of the other thread. */
  answer(sha256: string, failure: FetchedContent): void {
    const request = this.waiting.get(sha256);
    if (failure === null) request?.resolve();
    else request?.reject(new Fault(isFaultCode(failure.code) ? failure.code : 'internal', failure.message));
  }

  /** Removes the files of a run that has ended. */
  clear(now: number): void {
    clearContent(this.dataDir, now);
  }
}
